"""The titles of the charts of rounds: their findings in words, derived from the numbers."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from core.numbers import format_percent
from leaderboard.board.cells import Cell
from leaderboard.board.findings import MeasuredName, find_possible_leaders
from leaderboard.rounds.progress import Progress


def describe_gap(gap: Cell, round: int, best: str) -> str:
    """Return a sentence on who leads in a round: people, the best model, or neither clearly.

    gap: people minus the model called `best`, in points, with its interval.
    """
    if gap.value is None or gap.low is None or gap.high is None:
        return ""
    values = {"points": f"{abs(gap.value):.0f}", "round": round, "model": best}
    # Only claims what the interval supports.
    if gap.low > 0:
        return _("People still lead by %(points)s points in round %(round)d") % values
    if gap.high < 0:
        return _("%(model)s leads people by %(points)s points in round %(round)d") % values
    return _("People and models can't be told apart in round %(round)d yet") % values


def describe_best_models(models: Sequence[MeasuredName], round: int) -> str:
    """Return a sentence on the best models of a round, as far as intervals show which they are.

    models: all results on the round. For rounds without people's accuracy.
    """
    if not models:
        return _("No model has results on a round yet")
    leaders = find_possible_leaders(models)
    best = max(models, key=lambda model: model.value)
    values: dict[str, str | int] = {
        "model": leaders[0],
        "value": format_percent(best.value / 100, 0),
        "round": round,
    }
    if len(models) == 1:
        return _("%(model)s reaches %(value)s in round %(round)d") % values
    if len(leaders) == 1:
        return _("%(model)s is best in round %(round)d with %(value)s") % values
    if len(leaders) == 2:
        values["other"] = leaders[1]
        return _("%(model)s and %(other)s can't be told apart in round %(round)d yet") % values
    values["number"] = len(leaders)
    return _("%(number)d models can't be told apart in round %(round)d yet") % values


def describe_model_beside_people(model: Cell, gap: Cell, round: int) -> str:
    """Return a sentence on how far one model is from people on a round.

    model: its result, in percent. gap: people minus the model, in points, with its interval.
    """
    if model.value is None:
        return ""
    values = {"value": format_percent(model.value / 100, 0), "round": round}
    if gap.value is None or gap.low is None or gap.high is None:
        return _("This model reaches %(value)s in round %(round)d") % values
    values["points"] = f"{abs(gap.value):.0f}"
    if gap.low > 0:
        return _("This model is %(points)s points below people in round %(round)d") % values
    if gap.high < 0:
        return _("This model is %(points)s points above people in round %(round)d") % values
    return _("This model and people can't be told apart in round %(round)d yet") % values


def describe_catch_rate(
    progress: Progress,
    number: int,
    rate: float,
    previous_number: int | None,
    rate_before: float | None,
) -> str:
    """Return a sentence on the catch rate of a round.

    rate, rate_before: in percent. previous_number: the number of the earlier round.
    """
    values = {"number": number, "rate": format_percent(rate / 100, 0), "before": previous_number}
    if rate_before is not None:
        values["rate_before"] = format_percent(rate_before / 100, 0)
    # First, because then a change of the rate means nothing.
    if progress == Progress.NOISE:
        return _("Catches in round %(number)d may be label errors") % values
    if previous_number is None or rate_before is None:
        return _("The catch rate is %(rate)s in round %(number)d") % values
    if progress == Progress.BETTER:
        return (
            _("The catch rate fell from %(rate_before)s to %(rate)s in round %(number)d") % values
        )
    if progress == Progress.WORSE:
        return (
            _("The catch rate rose from %(rate_before)s to %(rate)s in round %(number)d") % values
        )
    return _("The catch rate has not clearly changed since round %(before)d") % values

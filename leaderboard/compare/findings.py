"""The finding of a comparison of two models in words, derived from the numbers."""

from django.utils.translation import gettext as _

from leaderboard.board.findings import describe_tie


def describe_comparison(
    first: str, second: str, first_wins: int, second_wins: int, tested_count: int
) -> str:
    """Return a sentence that says which of two models is clearly better, and how often.

    first_wins, second_wins: the numbers of the `tested_count` comparisons in which the first or the
    second model is clearly better.
    """
    if not tested_count:
        return _("No comparison could be tested")
    values = {"first": first, "second": second, "firsts": first_wins, "seconds": second_wins}
    values["tested"] = str(tested_count)
    if not first_wins and not second_wins:
        return describe_tie([first, second])
    # Each is better somewhere, so both numbers are stated, the first model's first.
    if first_wins and second_wins:
        text = _(
            "%(first)s is clearly better in %(firsts)d of %(tested)s comparisons, "
            "%(second)s in %(seconds)d"
        )
        return text % values
    values |= {"model": first if first_wins else second, "number": first_wins or second_wins}
    return _("%(model)s is clearly better in %(number)d of %(tested)s comparisons") % values

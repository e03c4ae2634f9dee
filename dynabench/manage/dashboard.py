"""The dashboard: the current figures of a round, for all members of its task."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from annotation.models import Example
from core.figures.figure import Figure, index_figures
from core.text.money import get_decimals
from core.web.figure_files import respond_with_figure
from core.web.htmx import is_htmx_partial, render_page
from dynabench.manage import charts
from dynabench.manage.access import build_attention_values, find_owned_task
from dynabench.manage.activity import CHALLENGE_TITLE, TAG_TITLE, Activity, count_activity
from dynabench.manage.approval import describe_approval
from dynabench.manage.next_step import find_next_step
from dynabench.manage.setup.launch import build_launch_list
from dynabench.operations.demo.services import can_offer_demo_to
from tasks.budgets import UsedBudget, compute_cost
from tasks.making.services import find_unopened_tasks
from tasks.models import Round, Task
from tasks.permissions import can_judge_as_owner, can_manage, can_oversee, can_own, is_blind_owner
from tasks.selectors import PLANNED_STATES
from tasks.targets.spending_services import sum_uses_in_round, sum_uses_outside
from validation.judging.short_of_judges import compute_shortage
from validation.statistics.answers import count_right_answers
from validation.statistics.cache import Numbers, get_all_numbers, read_cached_numbers
from validation.statistics.definitions import DEFINITIONS

SHOWN_RATES = ("mer", "vmer", "majority_share", "human_accuracy")
"""The names of the rates in the strip of numbers."""


@require_safe
def show_dashboard(request: HttpRequest, code: str) -> HttpResponse:
    """Show the figures of one round. Requests by htmx, which polls, get only the tiles.

    Arenas have no rounds, so it redirects to the arena.
    """
    task = find_owned_task(request, code, can_oversee)
    if task.config.kind == "arena":
        if can_manage(request.user, task):
            return redirect("own:arena", code)
        return redirect("leaderboard:arena", code)
    # Read once: the choice, the costs and what is missing all look at them.
    rounds = list(task.rounds.order_by("-number"))
    values: dict[str, Any] = {"task": task, "rounds": rounds}
    round = _choose_round(rounds, request.GET.get("round", ""))
    if round:
        values.update(_build_round_values(round), costs=_draw_cost_by_round(rounds))
    values["blind"] = is_blind_owner(request.user, task)
    if not is_htmx_partial(request):  # the tiles show none of it
        values |= _build_page_values(request, task, rounds, round)
        values["can_offer_demo"] = _is_empty(rounds, values) and can_offer_demo_to(request.user)
    return render_page(request, "own/dashboard.html", values, block_name="tiles")


@require_safe
def send_dashboard_chart(request: HttpRequest, code: str, name: str, format: str) -> HttpResponse:
    """Return a chart of one round as a file.

    Raises Http404 for charts that the page does not show, and for owners who judge blind.
    """
    task = find_owned_task(request, code, can_oversee)
    # Who judges blind must not read labels off a chart.
    if task.config.kind == "arena" or is_blind_owner(request.user, task):
        raise Http404
    round = _choose_round(list(task.rounds.order_by("-number")), request.GET.get("round", ""))
    # A task without a round has no chart.
    figures: Mapping[str, Figure] = {}
    page = reverse("own:dashboard", args=[code])
    if round:
        values = _build_round_values(round)
        figures = index_figures([values.get("days"), values.get("agreement")])
        page += f"?round={round.number}"
    return respond_with_figure(request, figures, name, format, prefix=task.code, page=page)


def _build_page_values(
    request: HttpRequest, task: Task, rounds: list[Round], round: Round | None
) -> dict[str, Any]:
    """Return the template's values for everything around the tiles, such as missing things."""
    values = build_attention_values(request, task) | build_launch_list(request, task, rounds)
    values |= describe_approval(request, task)
    values |= {"shortage": None, "step": None}
    # Owners who judge blind must not learn what votes have decided.
    if round and not is_blind_owner(request.user, task):
        values["shortage"] = compute_shortage(round)
    if round:
        values["step"] = find_next_step(request.user, round, rounds)
    is_owner = can_own(request.user, task)
    values["can_judge_as_owner"] = can_judge_as_owner(request.user, task)
    values["can_forget_demo"] = task.is_simulated and is_owner
    values["can_delete"] = is_owner and _is_in_preparation(task, rounds)
    return values


def _is_in_preparation(task: Task, rounds: list[Round]) -> bool:
    """Return whether the task is in preparation: no round was opened, so it has no examples.

    Queries the database only if no round was opened.
    """
    # No query where a round was opened: then somebody may have written.
    is_planned = all(round.state in PLANNED_STATES for round in rounds)
    return is_planned and find_unopened_tasks().filter(pk=task.pk).exists()


def _is_empty(rounds: list[Round], values: dict[str, Any]) -> bool:
    """Return whether the task has no example.

    Queries the database only if the shown round has no try.
    """
    tries = values.get("numbers", {}).get("collected")
    return not tries and not Example.objects.filter(round__in=rounds).exists()


def _choose_round(rounds: list[Round], number: str) -> Round | None:
    """Return the round with this number, or else the open or paused one, or else the latest.

    number: text from the URL. Return None without rounds.
    """
    named_rounds = [round for round in rounds if str(round.number) == number]
    live_rounds = [
        round for round in rounds if round.state in (Round.State.OPEN, Round.State.PAUSED)
    ]
    candidates = named_rounds + live_rounds + rounds
    return next(iter(candidates), None)


def _build_round_values(round: Round) -> dict[str, Any]:
    """Return the round's numbers for the template, all from one count.

    Contains only `round` until a large round has been counted for the first time.
    """
    cached_numbers = read_cached_numbers("activity", round, count_activity)
    if not cached_numbers:
        return {"round": round}
    activity: Any = cached_numbers.numbers["activity"]
    slices, untried_values = [], []
    for title, value, tries, confirmed in activity.slices:
        # The count is kept for readers of all languages, so these two are translated here.
        translated_title = gettext(title) if title in (TAG_TITLE, CHALLENGE_TITLE) else title
        # A challenge is counted by its name, and people know it by its sentence.
        if title == CHALLENGE_TITLE:
            value = round.task.config.challenges.get(value, value)
        slices.append((translated_title, value, tries, confirmed))
        if not tries:
            untried_values.append((translated_title, value))
    answers = None
    if round.task.config.has_rows_to_judge:
        answers = count_right_answers([round])
    return {
        "found": answers,
        "round": round,
        "kept": cached_numbers,
        "now": activity,
        "numbers": cached_numbers.numbers,
        "rates": [
            (name, DEFINITIONS[name].title, cached_numbers.numbers[name]) for name in SHOWN_RATES
        ],
        "money": _build_money_values(round, activity, cached_numbers.numbers),
        "model_uses": sum_uses_in_round(round),
        "other_uses": sum_uses_outside(round.task),
        "funnel": charts.draw_funnel(activity, cached_numbers.numbers),
        "days": charts.build_day_figure(activity),
        "agreement": charts.build_agreement_figure(activity),
        "labels": charts.build_label_bars(activity),
        "slices": charts.build_slice_bars(slices),
        "files": reverse("own:dashboard-chart", args=[round.task.code, "x", "svg"]).removesuffix(
            "x.svg"
        ),
        "file_query": f"?round={round.number}",
        "untried": untried_values,
    }


def _count_smallest_units() -> int:
    """Return the number of smallest units in a whole unit of the currency, such as 100 cents."""
    return int(10 ** get_decimals(settings.CURRENCY))


def _is_paid(round: Round) -> bool:
    budget = round.budget
    return bool(budget.pay_example or budget.pay_validation or budget.pay_bonus)


def _compute_cost(round: Round, numbers: Numbers) -> tuple[float, float | None]:
    """Return (cost of the round, cost per valid fooling example) in whole currency units.

    The second cost is None if the round has no such examples.
    """
    catch_count = numbers["verified_fooled"]
    if not isinstance(catch_count, int):  # a round without models
        catch_count = 0
    used_budget = UsedBudget(numbers["collected"], catch_count, numbers["votes"])  # type: ignore[arg-type]
    cost = compute_cost(round.budget, used_budget) / _count_smallest_units()
    if not catch_count:
        return cost, None
    return cost, cost / catch_count


def _draw_cost_by_round(rounds: list[Round]) -> SafeString:
    """Draw the cost of a valid fooling example by round.

    Return an empty string if fewer than two rounds pay.
    """
    # From the first round to the last, as charts are read.
    paid_rounds = [round for round in reversed(rounds) if _is_paid(round)]
    if len(paid_rounds) < 2:
        return SafeString()
    cached_numbers = get_all_numbers(paid_rounds)
    costs_by_round = {}
    for round in paid_rounds:
        if round.pk in cached_numbers:  # others are being counted for the first time
            _cost_of_round, cost_of_catch = _compute_cost(round, cached_numbers[round.pk].numbers)
            costs_by_round[round.number] = cost_of_catch
    return charts.draw_costs(costs_by_round)


def _build_money_values(
    round: Round, activity: Activity, numbers: Numbers
) -> dict[str, Any] | None:
    """Return the round's costs in whole currency units, or None if it pays nothing.

    Hourly pay is the base pay divided by the median time.
    """
    if not _is_paid(round):
        return None
    budget, units = round.budget, _count_smallest_units()
    cost, catch_cost = _compute_cost(round, numbers)

    def compute_hourly_pay(pay_units: int, seconds: float | None) -> float | None:
        if not (pay_units and seconds):
            return None
        return pay_units / units * 3600 / seconds

    return {
        "cost": cost,
        "limit": budget.max_spent and budget.max_spent / units,
        "a_fool": catch_cost,
        "writing": compute_hourly_pay(budget.pay_example, activity.writing),
        "judging": compute_hourly_pay(budget.pay_validation, activity.judging),
    }

"""The dashboard: the present numbers of a round, for all members of its task."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from annotation.models import Example
from core.web.htmx import htmx_partial, render_page
from dynabench.manage import charts
from dynabench.manage.access import build_attention_values, find_owned_task
from dynabench.manage.activity import CHALLENGE_TITLE, TAG_TITLE, Activity, count_activity
from dynabench.manage.approval import describe_approval
from dynabench.manage.next_step import find_next_step
from dynabench.manage.setup.launch import build_launch_list
from dynabench.operations.demo.services import can_offer
from tasks.budgets import UsedBudget, compute_cost
from tasks.making.services import find_unopened_tasks
from tasks.models import Round, Task
from tasks.permissions import can_manage, can_oversee, can_own, is_blind_owner, may_be_blind
from tasks.selectors import PLANNED_STATES
from tasks.targets.spending_services import sum_uses_in_round, sum_uses_outside
from validation.decisions.review_queue import without_consensus
from validation.judging.short_of_judges import short_of_judges
from validation.statistics.answers import right_answers
from validation.statistics.cache import Numbers, all_numbers, read_cached_numbers

RATE_TITLES = {
    "mer": "MER",
    "vmer": "vMER",
    "majority_share": _("With a consensus"),
    "human_accuracy": _("People agree with people"),
}


@require_safe
def dashboard(request: HttpRequest, code: str) -> HttpResponse:
    """Show the numbers of one round. Responds to htmx, which polls, with only the tiles."""
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
    if not htmx_partial(request):  # the tiles show none of it
        values |= _build_page_values(request, task, rounds, round)
        values["can_offer_demo"] = _is_empty(rounds, values) and can_offer(request.user)
    return render_page(request, "own/dashboard.html", values, part="tiles")


def _build_page_values(
    request: HttpRequest, task: Task, rounds: list[Round], round: Round | None
) -> dict[str, Any]:
    """Return the template's values for everything around the tiles, such as what is missing."""
    values = build_attention_values(request, task) | build_launch_list(request, task, rounds)
    values |= describe_approval(request, task)
    values |= {"undecided": 0, "shortage": None, "step": None}
    # Owners who judge blind must not learn what votes have decided.
    if round and not is_blind_owner(request.user, task):
        values["undecided"] = without_consensus(round)
        values["shortage"] = short_of_judges(round)
    if round:
        values["step"] = find_next_step(request.user, round, rounds)
    owns = can_own(request.user, task)
    values["may_be_blind"] = may_be_blind(request.user, task)
    values["can_forget_demo"] = task.is_simulated and owns
    values["can_delete"] = owns and _is_begun(task, rounds)
    return values


def _is_begun(task: Task, rounds: list[Round]) -> bool:
    """Return whether the task is in preparation, so that nobody can have written in it.

    Queries the database only if no round was opened.
    """
    # No query where a round was opened: then somebody may have written.
    planned = all(round.state in PLANNED_STATES for round in rounds)
    return planned and find_unopened_tasks().filter(pk=task.pk).exists()


def _is_empty(rounds: list[Round], values: dict[str, Any]) -> bool:
    """Return whether the task has no example.

    Queries the database only if the shown round has no try.
    """
    tries = values.get("numbers", {}).get("collected")
    return not tries and not Example.objects.filter(round__in=rounds).exists()


def _choose_round(rounds: list[Round], number: str) -> Round | None:
    """Return the round with this number, or else the open or paused one, or else the latest.

    Returns None without rounds.
    """
    named = [round for round in rounds if str(round.number) == number]
    live = [round for round in rounds if round.state in (Round.State.OPEN, Round.State.PAUSED)]
    candidates = named + live + rounds
    return next(iter(candidates), None)


def _build_round_values(round: Round) -> dict[str, Any]:
    """Return the round's numbers for the template, all from one count.

    Only the round while a large one is counted for the first time.
    """
    cached_numbers = read_cached_numbers("activity", round, count_activity)
    if not cached_numbers:
        return {"round": round}
    activity: Any = cached_numbers.numbers["activity"]
    slices, untried_values = [], []
    for title, value, tries, confirmed in activity.slices:
        # The count is kept for readers of all languages, so these two are translated here.
        words = gettext(title) if title in (TAG_TITLE, CHALLENGE_TITLE) else title
        slices.append((words, value, tries, confirmed))
        if not tries:
            untried_values.append(f"{words}: {value}")
    answers = None
    if round.task.config.judges_rows:
        answers = right_answers([round])
    return {
        "found": answers,
        "round": round,
        "kept": cached_numbers,
        "now": activity,
        "numbers": cached_numbers.numbers,
        "rates": [
            (name, title, cached_numbers.numbers[name]) for name, title in RATE_TITLES.items()
        ],
        "money": _build_money_values(round, activity, cached_numbers.numbers),
        "model_uses": sum_uses_in_round(round),
        "other_uses": sum_uses_outside(round.task),
        "funnel": charts.draw_funnel(activity, cached_numbers.numbers),
        "days": charts.draw_days(activity),
        "agreement": charts.draw_agreement(activity),
        "labels": charts.draw_labels(activity),
        "slices": charts.draw_slices(slices),
        "untried": untried_values,
    }


def _is_paid(round: Round) -> bool:
    budget = round.budget
    return bool(budget.pay_example or budget.pay_validation or budget.pay_bonus)


def _compute_cost(round: Round, numbers: Numbers) -> tuple[float, float | None]:
    """Return (cost of the round, cost per valid fooling example) in whole currency units.

    The second is None without such examples.
    """
    catch_count = numbers["verified_fooled"]
    if not isinstance(catch_count, int):  # a round without models
        catch_count = 0
    used = UsedBudget(numbers["collected"], catch_count, numbers["votes"])  # type: ignore[arg-type]
    cost = compute_cost(round.budget, used) / 100
    if not catch_count:
        return cost, None
    return cost, cost / catch_count


def _draw_cost_by_round(rounds: list[Round]) -> SafeString:
    """Draw the cost of a valid fooling example by round.

    Returns an empty string for fewer than two rounds that pay.
    """
    # From the first round to the last, as charts are read.
    paid_rounds = [round for round in reversed(rounds) if _is_paid(round)]
    if len(paid_rounds) < 2:
        return SafeString()
    cached_numbers = all_numbers(paid_rounds)
    by_round = {}
    for round in paid_rounds:
        if round.pk in cached_numbers:  # others are being counted for the first time
            _cost_of_round, cost_of_catch = _compute_cost(round, cached_numbers[round.pk].numbers)
            by_round[round.number] = cost_of_catch
    return charts.draw_costs(by_round)


def _build_money_values(
    round: Round, activity: Activity, numbers: Numbers
) -> dict[str, Any] | None:
    """Return the round's costs in whole currency units, or None if it pays nothing.

    The hourly pay is the base pay at the median time.
    """
    if not _is_paid(round):
        return None
    budget, (cost, catch_cost) = round.budget, _compute_cost(round, numbers)

    def compute_hourly_pay(pay_cents: int, seconds: float | None) -> float | None:
        if not (pay_cents and seconds):
            return None
        return pay_cents / 100 * 3600 / seconds

    return {
        "cost": cost,
        "limit": budget.money and budget.money / 100,
        "a_fool": catch_cost,
        "writing": compute_hourly_pay(budget.pay_example, activity.writing),
        "judging": compute_hourly_pay(budget.pay_validation, activity.judging),
    }

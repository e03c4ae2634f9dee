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
from dynabench.manage.access import owned_task, waiting
from dynabench.manage.activity import CHALLENGE, TAG, Activity, count_activity
from dynabench.manage.approval import approval_of
from dynabench.manage.next_step import next_step
from dynabench.manage.setup.launch import launch_list
from dynabench.operations.demo.services import can_offer
from tasks.budgets import Used, spent
from tasks.making.services import begun_tasks
from tasks.models import Round, Task
from tasks.permissions import can_manage, can_oversee, can_own, is_blind_owner, may_be_blind
from tasks.selectors import PLANNED
from tasks.targets.spending_services import used_in, used_outside
from validation.decisions.review_queue import without_consensus
from validation.judging.short_of_judges import short_of_judges
from validation.statistics.answers import right_answers
from validation.statistics.cache import Numbers, all_numbers, numbers_with

RATES = {
    "mer": "MER",
    "vmer": "vMER",
    "majority_share": _("With a consensus"),
    "human_accuracy": _("People agree with people"),
}


@require_safe
def dashboard(request: HttpRequest, code: str) -> HttpResponse:
    """Show the numbers of one round. htmx gets only the tiles, which it requests repeatedly."""
    task = owned_task(request, code, can_oversee)
    if task.config.kind == "arena":
        page = "own:arena" if can_manage(request.user, task) else "leaderboard:arena"
        return redirect(page, code)
    rounds = list(task.rounds.order_by("-number"))
    values: dict[str, Any] = {"task": task, "rounds": rounds}
    round = _chosen(rounds, request.GET.get("round", ""))
    if round:
        values.update(_values(round), costs=_costs(rounds))
    values["blind"] = is_blind_owner(request.user, task)
    if not htmx_partial(request):  # the tiles show none of it
        values |= waiting(request, task) | launch_list(request, task, rounds)
        values |= approval_of(request, task)
        values["undecided"] = without_consensus(round) if round and not values["blind"] else 0
        values["shortage"] = short_of_judges(round) if round and not values["blind"] else None
        values["may_be_blind"] = may_be_blind(request.user, task)
        values["step"] = next_step(request.user, round, rounds) if round else None
        values["can_forget_demo"] = task.is_simulated and can_own(request.user, task)
        values["can_delete"] = can_own(request.user, task) and _is_begun(task, rounds)
        values["can_offer_demo"] = _is_empty(rounds, values) and can_offer(request.user)
    return render_page(request, "own/dashboard.html", values, part="tiles")


def _is_begun(task: Task, rounds: list[Round]) -> bool:
    """Return whether the task is one of the begun ones, in which nobody can have written yet.

    The database is asked only where no round was opened.
    """
    planned = all(round.state in PLANNED for round in rounds)
    return planned and begun_tasks().filter(pk=task.pk).exists()


def _is_empty(rounds: list[Round], values: dict[str, Any]) -> bool:
    """Return whether nothing was written in the task.

    The database is asked only where the shown round has no try.
    """
    tries = values.get("numbers", {}).get("collected")
    return not tries and not Example.objects.filter(round__in=rounds).exists()


def _chosen(rounds: list[Round], wanted: str) -> Round | None:
    """Return the round that the address names, else the live one, else the latest."""
    named = [round for round in rounds if str(round.number) == wanted]
    live = [round for round in rounds if round.state in (Round.State.OPEN, Round.State.PAUSED)]
    return next(iter((*named, *live, *rounds)), None)


def _values(round: Round) -> dict[str, Any]:
    """Return the round's numbers for the template, all of them from one count.

    `kept` is missing while a large round is counted for the first time.
    """
    if not (kept := numbers_with("activity", round, count_activity)):
        return {"round": round}
    now: Any = kept.numbers["activity"]
    slices = [
        (gettext(title) if title in (TAG, CHALLENGE) else title, *rest)
        for title, *rest in now.slices
    ]
    return {
        "found": right_answers([round]) if round.task.config.judges_rows else None,
        "round": round,
        "kept": kept,
        "now": now,
        "numbers": kept.numbers,
        "rates": [(name, title, kept.numbers[name]) for name, title in RATES.items()],
        "money": _money(round, now, kept.numbers),
        "model_uses": used_in(round),
        "other_uses": used_outside(round.task),
        "funnel": charts.funnel(now, kept.numbers),
        "days": charts.by_day(now),
        "agreement": charts.agreement(now),
        "labels": charts.labels(now),
        "slices": charts.slices(slices),
        "untried": [f"{title}: {value}" for title, value, tries, _ in slices if not tries],
    }


def _pays(round: Round) -> bool:
    budget = round.budget
    return bool(budget.pay_example or budget.pay_validation or budget.pay_bonus)


def _cost(round: Round, numbers: Numbers) -> tuple[float, float | None]:
    """Return what the round has cost, and each valid fooling example of it, in whole money."""
    fools = numbers["verified_fooled"]
    fooling = fools if isinstance(fools, int) else 0
    used = Used(numbers["collected"], fooling, numbers["votes"])  # type: ignore[arg-type]
    cost = spent(round.budget, used) / 100
    return cost, cost / fooling if fooling else None


def _costs(rounds: list[Round]) -> SafeString:
    """Draw the cost of a valid fooling example by round.

    Returns nothing for fewer than two rounds that pay.
    """
    paid = [round for round in reversed(rounds) if _pays(round)]
    if len(paid) < 2:
        return SafeString()
    kept = all_numbers(paid)
    return charts.costs(
        {
            round.number: _cost(round, kept[round.pk].numbers)[1]
            for round in paid
            if round.pk in kept
        }
    )


def _money(round: Round, now: Activity, numbers: Numbers) -> dict[str, Any] | None:
    """Return what the round has cost, in whole money; None where it pays nothing.

    Pay an hour is what the base pay comes to at the median time.
    """
    if not _pays(round):
        return None
    budget, (cost, a_fool) = round.budget, _cost(round, numbers)

    def an_hour(pay: int, seconds: float | None) -> float | None:
        return pay / 100 * 3600 / seconds if pay and seconds else None

    return {
        "cost": cost,
        "limit": budget.money and budget.money / 100,
        "a_fool": a_fool,
        "writing": an_hour(budget.pay_example, now.writing),
        "judging": an_hour(budget.pay_validation, now.judging),
    }

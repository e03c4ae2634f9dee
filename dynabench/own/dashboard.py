"""The dashboard: what a round amounts to now, for all members of its task."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from dynabench.lib.htmx import render_page
from dynabench.own import charts
from dynabench.own.access import owned_task, waiting
from dynabench.own.activity import CHALLENGE, TAG, Activity, count_activity
from tasks.budgets import Used, spent
from tasks.models import Round
from tasks.permissions import can_read
from validation.decisions.review_queue import without_consensus
from validation.statistics.cache import Numbers, numbers_with

RATES = {
    "mer": "MER",
    "vmer": "vMER",
    "majority_share": _("With a consensus"),
    "human_accuracy": _("People agree with people"),
}


@require_safe
def dashboard(request: HttpRequest, code: str) -> HttpResponse:
    """The numbers of one round; for htmx the tiles alone, which are asked for again and again."""
    task = owned_task(request, code, can_read)
    rounds = list(task.rounds.order_by("-number"))
    values: dict[str, Any] = {"task": task, "rounds": rounds, **waiting(request, task)}
    if round := _chosen(rounds, request.GET.get("round", "")):
        values.update(_values(round), undecided=without_consensus(round))
    return render_page(request, "own/dashboard.html", values, part="tiles")


def _chosen(rounds: list[Round], wanted: str) -> Round | None:
    """The round that the address names, else the live one, else the latest."""
    named = [round for round in rounds if str(round.number) == wanted]
    live = [round for round in rounds if round.state in (Round.State.OPEN, Round.State.PAUSED)]
    return next(iter((*named, *live, *rounds)), None)


def _values(round: Round) -> dict[str, Any]:
    """All of one count. Without `kept` while a large round is counted for the first time."""
    if not (kept := numbers_with("activity", round, count_activity)):
        return {"round": round}
    now: Any = kept.numbers["activity"]
    slices = [
        (gettext(title) if title in (TAG, CHALLENGE) else title, *rest)
        for title, *rest in now.slices
    ]
    return {
        "round": round,
        "kept": kept,
        "now": now,
        "numbers": kept.numbers,
        "rates": [(name, title, kept.numbers[name]) for name, title in RATES.items()],
        "money": _money(round, now, kept.numbers),
        "funnel": charts.funnel(now, kept.numbers),
        "days": charts.by_day(now),
        "agreement": charts.agreement(now),
        "labels": charts.labels(now),
        "slices": charts.slices(slices),
        "untried": [f"{title}: {value}" for title, value, tries, _ in slices if not tries],
    }


def _money(round: Round, now: Activity, numbers: Numbers) -> dict[str, Any] | None:
    """What the round has cost, in whole money; None where it pays nothing.

    Pay an hour is what the base pay comes to at the median time.
    """
    budget = round.budget
    if not (budget.pay_example or budget.pay_validation or budget.pay_bonus):
        return None
    fools = numbers["verified_fooled"]
    fooling = fools if isinstance(fools, int) else 0
    cost = spent(budget, Used(numbers["collected"], fooling, numbers["votes"])) / 100  # type: ignore[arg-type]

    def an_hour(pay: int, seconds: float | None) -> float | None:
        return pay / 100 * 3600 / seconds if pay and seconds else None

    return {
        "cost": cost,
        "limit": budget.money and budget.money / 100,
        "a_fool": cost / fooling if fooling else None,
        "writing": an_hour(budget.pay_example, now.writing),
        "judging": an_hour(budget.pay_validation, now.judging),
    }

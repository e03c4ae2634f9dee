"""The page of a released round: its findings, its best catches, and how to use and cite it."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from core.days import get_today
from dynabench.catches.selectors import find_best_catches
from dynabench.catches.services import show_catches
from dynabench.task_figures import NumberedRound, build_task_figures
from evaluation.dataset_releases.cards import make_bibtex
from evaluation.dataset_releases.reading import find_latest_datasets
from tasks.access import find_task
from tasks.models import Round
from tasks.permissions import can_download
from validation.rates.rates import Rate
from validation.statistics.cache import get_all_numbers

MAX_BEST_CATCHES = 3


@login_not_required
@require_GET
def show_round(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show what a released round found. Raises Http404 for rounds that are not released."""
    task = find_task(request, code)
    round = get_object_or_404(task.rounds, number=number)
    # Numbers of an open round would tell writers and judges about one another's work.
    if round.state != Round.State.RELEASED:
        raise Http404
    round.task = task  # known, so not read again
    # Earlier rounds show whether people's lead has grown.
    earlier_rounds = task.rounds.filter(state=Round.State.RELEASED, number__lt=number)
    rounds = [*earlier_rounds.order_by("number"), round]
    cached_numbers = get_all_numbers(rounds)
    numbered_rounds = [
        (each, cached_numbers[each.pk]) for each in rounds if each.pk in cached_numbers
    ]
    values: dict[str, Any] = {
        "here": "data",
        "task": task,
        "round": round,
        "numbers": cached_numbers[round.pk].numbers if round.pk in cached_numbers else None,
        "gaps": _list_gaps(numbered_rounds),
        # Without files: those of the task show all rounds, also later ones.
        "gap_figure": build_task_figures(numbered_rounds, get_today()).get("people-and-model"),
        "catches": show_catches(request.user, task, find_best_catches(round, MAX_BEST_CATCHES)),
    }
    if can_download(request.user, task):
        dataset = find_latest_datasets([round]).get(round.pk)
        if dataset:
            address = request.build_absolute_uri(request.path)
            values |= {"dataset": dataset, "bibtex": make_bibtex(dataset, address)}
    return render(request, "catches/round.html", values)


def _list_gaps(numbered_rounds: Sequence[NumberedRound]) -> list[tuple[Round, Rate]]:
    """Return (round, human–model gap) for each round whose gap is known, in the same order."""
    gaps = []
    for round, counts in numbered_rounds:
        gap = counts.numbers["human_model_gap"]
        if isinstance(gap, Rate):
            gaps.append((round, gap))
    return gaps

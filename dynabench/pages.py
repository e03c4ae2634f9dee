"""The pages that look over all stages: tasks, groups of them, a task's own page, its numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from dynabench.lib.adaptive_cache import Kept
from dynabench.lib.htmx import render_page
from dynabench.lib.markdown import render_markdown
from leaderboard.snapshots.previews import tops_of
from tasks.budgets import Line, Used, lines
from tasks.models import Round, Task, TaskGroup
from tasks.selectors import groups_with, listed_tasks, seen_rounds
from validation.statistics.cache import headline_numbers
from validation.statistics.definitions import DEFINITIONS


@login_not_required
def home(request: HttpRequest) -> HttpResponse:
    """All tasks that this person may see, by search and filters."""
    tasks = list(listed_tasks(request.user))
    latest = _latest_rounds(tasks)
    search = request.GET.get("q", "").strip().lower()
    only_open, no_sensitive = request.GET.get("open"), request.GET.get("mild")
    shown = [
        task
        for task in tasks
        if search in f"{task.name} {task.summary} {task.code}".lower()
        and not (only_open and not (task.pk in latest and latest[task.pk].state == "open"))
        and not (no_sensitive and task.is_sensitive)
    ]
    values = {
        "cards": _cards(shown, latest),
        "groups": groups_with(tasks),
        "search": search,
        "open": only_open,
        "mild": no_sensitive,
    }
    return render_page(request, "tasks/home.html", values, part="tasks")


@login_not_required
def group(request: HttpRequest, slug: str) -> HttpResponse:
    """A community's tasks; it is there for those who may see one of them."""
    found = get_object_or_404(TaskGroup, slug=slug)
    members = set(found.tasks.values_list("pk", flat=True))
    tasks = [task for task in listed_tasks(request.user) if task.pk in members]
    if not tasks and not request.user.is_superuser:
        raise Http404
    tops = tops_of(tasks)
    values = {
        "group": found,
        "description": render_markdown(found.description),
        "cards": [
            {**card, "top": tops.get(card["task"].pk)}
            for card in _cards(tasks, _latest_rounds(tasks))
        ],
    }
    return render(request, "tasks/group.html", values)


def _latest_rounds(tasks: Sequence[Task]) -> dict[int, Round]:
    """Of each task's id the round that opened last."""
    return {round.task_id: round for round in seen_rounds(tasks)}


def _cards(tasks: Sequence[Task], latest: Mapping[int, Round]) -> list[dict[str, Any]]:
    """What lists say of each task."""
    kept = headline_numbers([latest[task.pk] for task in tasks if task.pk in latest])
    cards: list[dict[str, Any]] = []
    for task in tasks:
        round = latest.get(task.pk)
        known = kept.get(round.pk) if round else None
        cards.append(
            {
                "task": task,
                "round": round,
                "numbers": known and known.numbers,
                "wanted": _wanted(round, known) if round and known else [],
            }
        )
    return cards


def _wanted(round: Round, kept: Kept) -> list[Line]:
    """How far the round is with what it may collect; what it may cost is the owner's business."""
    counts = [kept.numbers[name] for name in ("collected", "verified_fooled")]
    used = Used(*(count if isinstance(count, int) else 0 for count in counts))
    return [line for line in lines(round.budget, used) if line.name != "money"]


@login_not_required
def numbers(request: HttpRequest) -> HttpResponse:
    """What each share means."""
    return render(request, "numbers.html", {"definitions": DEFINITIONS})

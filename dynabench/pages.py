"""The pages that look over all stages: the task list and a task's own page."""

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from annotation.selectors import rounds_with_counts
from dynabench.lib.htmx import render_page
from dynabench.lib.markdown import render_markdown
from tasks.models import Task
from tasks.permissions import can_edit, can_see
from tasks.schema import ShownExample, TaskConfig
from tasks.selectors import listed_tasks
from validation.definitions import DEFINITIONS
from validation.selectors import JUDGED_STATES, round_numbers


@login_not_required
def home(request: HttpRequest) -> HttpResponse:
    """All tasks that this person may see, by search and filters."""
    tasks = listed_tasks(request.user)
    counts = rounds_with_counts(tasks)
    search = request.GET.get("q", "").strip().lower()
    only_open, no_sensitive = request.GET.get("open"), request.GET.get("mild")
    cards = [
        {"task": task, "round": counts.get(task.pk)}
        for task in tasks
        if search in f"{task.name} {task.summary} {task.code}".lower()
        and not (only_open and not (counts.get(task.pk) and counts[task.pk].state == "open"))
        and not (no_sensitive and task.is_sensitive)
    ]
    values = {"cards": cards, "search": search, "open": only_open, "mild": no_sensitive}
    return render_page(request, "tasks/home.html", values, part="tasks")


@login_not_required
def task(request: HttpRequest, code: str) -> HttpResponse:
    """One task: what is asked, the rounds, the targets."""
    found = get_object_or_404(Task, code=code)
    if not can_see(request.user, found):
        raise Http404
    rounds = rounds_with_counts([found], latest_only=False)
    live = next((r for r in rounds.values() if r.state in ("open", "paused")), None)
    judged = round_numbers(*rounds.values())
    values: dict[str, Any] = {
        "task": found,
        "config": found.config,
        "rounds": [(round, judged[round.pk]) for round in rounds.values()],
        "can_judge": any(round.state in JUDGED_STATES for round in rounds.values()),
        "round": live,
        "instructions": render_markdown(found.config.instructions),
        "description": render_markdown(live.description) if live else "",
        "example_groups": [
            ("Good examples", [_shown(found.config, case) for case in found.config.examples.good]),
            ("Bad examples", [_shown(found.config, case) for case in found.config.examples.bad]),
        ],
        "can_edit": can_edit(request.user, found),
    }
    return render(request, "tasks/task.html", values)


@login_not_required
def numbers(request: HttpRequest) -> HttpResponse:
    """What each share means."""
    return render(request, "numbers.html", {"definitions": DEFINITIONS})


def _shown(config: TaskConfig, case: ShownExample) -> dict[str, Any]:
    """A shipped example with the words that people read."""
    values = {**case.context, **case.input}
    return {
        "reason": case.reason,
        "shown": [
            (config.component(name).title, config.display(name, value))
            for name, value in values.items()
        ],
    }

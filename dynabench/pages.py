"""The pages that look over all stages: tasks, groups of them, a task's own page, its numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from dynabench.lib.adaptive_cache import Kept
from dynabench.lib.charts import Point, line_chart
from dynabench.lib.downloads import csv_file
from dynabench.lib.htmx import render_page
from dynabench.lib.markdown import render_markdown
from evaluation.releases.reading import latest_datasets
from leaderboard.snapshots.previews import tops_of
from tasks.access import find_task
from tasks.budgets import Line, Used, lines
from tasks.config.schema import ShownExample, TaskConfig
from tasks.models import Round, Task, TaskGroup
from tasks.permissions import can_edit, can_moderate
from tasks.selectors import groups_with, listed_tasks, seen_rounds
from tasks.targets.failures import failing
from validation.judging.queue import JUDGED_STATES
from validation.rules.rates import Rate
from validation.statistics.cache import all_numbers, headline_numbers
from validation.statistics.definitions import DEFINITIONS
from validation.statistics.report import as_json, flat

Numbered = tuple[Round, Kept]


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
def task(request: HttpRequest, code: str) -> HttpResponse:
    """One task: what is asked, the numbers, the rounds, the targets, the first models."""
    from leaderboard.board.page import top  # it loads numpy

    found = find_task(request, code)
    rounds = seen_rounds([found])
    live = next((r for r in rounds if r.state in ("open", "paused")), None)
    examples = found.config.examples
    values: dict[str, Any] = {
        "task": found,
        "groups": groups_with([found]),
        "config": found.config,
        "round": live,
        "can_judge": any(round.state in JUDGED_STATES for round in rounds),
        "instructions": render_markdown(found.config.instructions),
        "description": render_markdown(live.description) if live else "",
        "example_groups": [
            (title, [_shown(found.config, case) for case in cases])
            for title, cases in (
                (_("Good examples"), examples.good),
                (_("Bad examples"), examples.bad),
            )
            if cases
        ],
        "people": render_markdown(found.config.about.people),
        "ethics": render_markdown(found.config.about.ethics),
        "top": top(found),
        "can_edit": can_edit(request.user, found),
        "can_moderate": can_moderate(request.user, found),
        **_numbers_of(rounds),
    }
    if values["can_moderate"]:
        values["failing"] = failing(found)
    return render(request, "tasks/task.html", values)


def _numbers_of(rounds: Sequence[Round]) -> dict[str, Any]:
    """The rounds with their numbers and newest datasets, and what is drawn of them."""
    kept, datasets = all_numbers(rounds), latest_datasets(rounds)
    numbered = [(round, kept[round.pk]) for round in rounds if round.pk in kept]
    accuracies = {_("people"): "human_accuracy", _("models"): "model_accuracy"}
    return {
        "rounds": [(round, kept.get(round.pk), datasets.get(round.pk)) for round in rounds],
        "numbered": [(round, one.numbers) for round, one in numbered],
        "is_counting": len(numbered) < len(rounds),
        "has_examples": any(one.numbers["collected"] for _, one in numbered),
        "counted_at": min((one.counted_at for _, one in numbered), default=None),
        "trend": _chart(numbered, {"vMER": "vmer"}, _("vMER by round")),
        "gap": _chart(numbered, accuracies, _("Accuracy of people and models by round")),
    }


def _chart(numbered: Sequence[Numbered], lines: Mapping[str, str], title: str) -> SafeString | None:
    """Rates over the rounds; None where a table says it better: fewer than two rounds have one."""
    rates = {
        name: [(round.number, kept.numbers[key]) for round, kept in numbered]
        for name, key in lines.items()
    }
    if any(sum(isinstance(rate, Rate) for _, rate in found) < 2 for found in rates.values()):
        return None
    round_name = _("Round %(number)d")
    points = {
        name: [
            Point(round_name % {"number": n}, rate.value, rate.low, rate.high)
            if isinstance(rate, Rate)
            else Point(round_name % {"number": n}, None)
            for n, rate in found
        ]
        for name, found in rates.items()
    }
    return line_chart(points, title=title)


@login_not_required
def numbers_file(request: HttpRequest, code: str, kind: str) -> HttpResponse:
    """Every number of each round as JSON, or as CSV with a line for each round.

    503 while a large round is counted for the first time.
    """
    found = find_task(request, code)
    rows = _rows(found)
    if rows is None:
        words = _("The numbers are being counted. Ask again in a minute.")
        response = HttpResponse(f"{words}\n", status=503, content_type="text/plain; charset=utf-8")
        response["Retry-After"] = "60"
        return response
    if kind == "json":
        return JsonResponse({"task": found.code, "rounds": rows})
    table = [flat(row) for row in rows]
    columns = table[0] if table else ["round"]
    return csv_file([columns, *(row.values() for row in table)], f"{found.code}-numbers.csv")


def _rows(task: Task) -> list[dict[str, Any]] | None:
    """The rounds' numbers; None while one is counted for the first time."""
    rounds = seen_rounds([task])
    kept = all_numbers(rounds)
    if len(kept) < len(rounds):
        return None
    return [
        {"round": r.number, "counted_at": kept[r.pk].counted_at, **as_json(kept[r.pk].numbers)}
        for r in rounds
    ]


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

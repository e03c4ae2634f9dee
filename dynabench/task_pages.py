"""A task's own pages: the overview, its rounds with their numbers, its data."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.charts import Point, line_chart, reach
from core.data.adaptive_cache import Kept
from core.text.markdown import render_markdown
from core.web.downloads import csv_file
from dynabench.communities.selectors import find_communities
from evaluation.dataset_releases.reading import find_latest_datasets, find_public_datasets
from evaluation.models import Dataset
from tasks.access import ALL_KINDS, find_task
from tasks.config.schema import ShownExample, TaskConfig
from tasks.contexts.media.markup import render_value
from tasks.models import Round, Task
from tasks.permissions import can_edit, can_review, can_take
from tasks.selectors import find_opened_rounds
from tasks.targets.failures import find_failures
from validation.decisions.awaited import JUDGED_STATES
from validation.rates.rates import Rate
from validation.statistics.cache import all_numbers
from validation.statistics.report import as_json, flatten_row

NumberedRound = tuple[Round, Kept]
MAX_FIRST_MODELS = 3
"""Models in the overview."""


@login_not_required
def overview(request: HttpRequest, code: str) -> HttpResponse:
    """Show the task's goal, the numbers of people and models, and the best models."""
    task = find_task(request, code, kinds=ALL_KINDS)
    rounds = find_opened_rounds([task])
    live_round = next((round for round in rounds if round.state in ("open", "paused")), None)
    description = ""
    if live_round:
        description = render_markdown(live_round.description)
    config, numbered_rounds = task.config, _pair_with_numbers(rounds)
    values: dict[str, Any] = {
        **_build_frame_values(request, task, "overview"),
        "communities": find_communities(task, request.user),
        "round": live_round,
        "is_judged": any(round.state in JUDGED_STATES for round in rounds),
        "can_edit": can_edit(request.user, task),
        "instructions": render_markdown(config.instructions),
        "description": description,
        "good": [_describe_example(config, case) for case in config.examples.good],
        "bad": [_describe_example(config, case) for case in config.examples.bad],
        "newest": next(reversed(numbered_rounds), None),
        "is_counting": len(numbered_rounds) < len(rounds),
        "share_scale": (0.0, 1.0),
        "gap": _draw_gap(numbered_rounds),
        **_find_best_models(task),
        "follows": task.followers.filter(user=request.user.pk).exists(),
    }
    if values["can_review"]:
        values["failing"] = find_failures(task)
    return render(request, "tasks/overview.html", values)


def _build_frame_values(request: HttpRequest, task: Task, tab_name: str) -> dict[str, Any]:
    """Return the values that every page of the task needs. tab_name: the page's tab."""
    return {
        "here": tab_name,
        "task": task,
        "config": task.config,
        "can_review": can_review(request.user, task),
    }


def _find_best_models(task: Task) -> dict[str, Any]:
    """Return the best models by the owner's weights, and a scale that fits their intervals."""
    from leaderboard.board.page import rank_first_models  # it loads numpy

    board = rank_first_models(task)
    first = board["top"][:MAX_FIRST_MODELS]
    cells = [row.dynascore for row, _score, _interval in first]
    return {**board, "top": first, "scale": reach(chain.from_iterable(cells))}


@login_not_required
def task_rounds(request: HttpRequest, code: str) -> HttpResponse:
    """Show the rounds of a task with their models, numbers and charts."""
    task = find_task(request, code)
    rounds = find_opened_rounds([task])
    numbered_rounds = _pair_with_numbers(rounds)
    datasets: Mapping[int, Dataset] = {}
    if can_take(request.user, task):
        datasets = find_latest_datasets(rounds)
    counts_by_round = {round.pk: counts for round, counts in numbered_rounds}
    values = {
        **_build_frame_values(request, task, "rounds"),
        "rounds": [
            (round, counts_by_round.get(round.pk), datasets.get(round.pk)) for round in rounds
        ],
        "numbered": [(round, counts.numbers) for round, counts in numbered_rounds],
        "is_counting": len(numbered_rounds) < len(rounds),
        "has_examples": any(counts.numbers["collected"] for _round, counts in numbered_rounds),
        "counted_at": min((counts.counted_at for _round, counts in numbered_rounds), default=None),
        "trend": _draw_chart(numbered_rounds, {"vMER": "vmer"}, _("vMER by round")),
        "gap": _draw_gap(numbered_rounds),
        "is_open": any(round.state == Round.State.OPEN for round in rounds),
    }
    return render(request, "tasks/rounds.html", values)


@login_not_required
def task_data(request: HttpRequest, code: str) -> HttpResponse:
    """Show the downloads of a task, their authors and their licences."""
    task = find_task(request, code, kinds=ALL_KINDS)
    about, may_take = task.config.about, can_take(request.user, task)
    datasets = []
    if may_take:
        datasets = find_public_datasets(find_opened_rounds([task]))
    values = {
        **_build_frame_values(request, task, "data"),
        "datasets": datasets,
        "takes": may_take,
        "people": render_markdown(about.people),
        "ethics": render_markdown(about.ethics),
    }
    return render(request, "tasks/data.html", values)


@login_not_required
def numbers_file(request: HttpRequest, code: str, kind: str) -> HttpResponse:
    """Download all numbers of each round as JSON, or as CSV with one line per round.

    Status 503 while a large round is counted for the first time.
    """
    task = find_task(request, code)
    rows = _build_rows(task)
    if rows is None:
        words = _("The numbers are being counted. Ask again in a minute.")
        response = HttpResponse(f"{words}\n", status=503, content_type="text/plain; charset=utf-8")
        response["Retry-After"] = "60"
        return response
    if kind == "json":
        return JsonResponse({"task": task.code, "rounds": rows})
    lines: list[Any] = [["round"]]
    table = [flatten_row(row) for row in rows]
    if table:
        lines = [table[0].keys()]
        lines += [row.values() for row in table]
    return csv_file(lines, f"{task.code}-numbers.csv")


def _build_rows(task: Task) -> list[dict[str, Any]] | None:
    """Return the rounds' numbers, or None while a round is counted for the first time."""
    rounds = find_opened_rounds([task])
    cached_numbers = all_numbers(rounds)
    if len(cached_numbers) < len(rounds):
        return None
    rows = []
    for round in rounds:
        counted = cached_numbers[round.pk]
        about = {"round": round.number, "counted_at": counted.counted_at}
        rows.append({**about, **as_json(counted.numbers)})
    return rows


def _pair_with_numbers(rounds: Sequence[Round]) -> list[NumberedRound]:
    """Return (round, numbers) for the rounds whose numbers have been counted."""
    counts = all_numbers(rounds)
    return [(round, counts[round.pk]) for round in rounds if round.pk in counts]


def _draw_gap(numbered_rounds: Sequence[NumberedRound]) -> SafeString | None:
    accuracies = {_("people"): "human_accuracy", _("models"): "model_accuracy"}
    return _draw_chart(numbered_rounds, accuracies, _("Accuracy of people and models by round"))


def _draw_chart(
    numbered_rounds: Sequence[NumberedRound], lines: Mapping[str, str], title: str
) -> SafeString | None:
    """Draw rates over the rounds.

    Returns None if fewer than two rounds have a rate, because a table is clearer then.
    """
    round_name = _("Round %(number)d")
    points_by_line = {}
    for name, key in lines.items():
        points, rates = [], 0
        for round, counts in numbered_rounds:
            words, rate = round_name % {"number": round.number}, counts.numbers[key]
            if isinstance(rate, Rate):
                points.append(Point(words, rate.value, rate.low, rate.high))
                rates += 1
            else:
                points.append(Point(words, None))  # a gap in the line
        if rates < 2:
            return None
        points_by_line[name] = points
    return line_chart(points_by_line, title=title)


def _describe_example(config: TaskConfig, case: ShownExample) -> dict[str, Any]:
    """Return a sample example with its values as text, changes of its prompt marked.

    fields: (title, pieces) of context and input. A piece is (text, whether it is new).
    """
    prompt = ""
    if config.support and config.support.prompt_field:
        prompt = str(case.context.get(config.support.prompt_field, ""))
    fields = []
    for name, value in {**case.context, **case.input}.items():
        words = render_value(config, name, value)
        pieces = [(words, False)]
        if prompt and name == config.text_field:
            pieces = _mark_changes(prompt, words)
        fields.append((config.component(name).title, pieces))
    return {"reason": case.reason, "fields": fields}


def _mark_changes(before: str, after: str) -> list[tuple[str, bool]]:
    """Split the later text into (piece, whether it is new)."""
    old, new = before.split(), after.split()
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    pieces = [(" ".join(new[low:high]), tag != "equal") for tag, _a, _b, low, high in steps]
    return [piece for piece in pieces if piece[0]]

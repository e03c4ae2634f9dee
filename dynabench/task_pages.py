"""A task's own pages: the overview, and its data with the rounds and their numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from core.accounts.people import get_person
from core.data.adaptive_cache import CachedResult
from core.days import get_today
from core.text.markdown import render_markdown
from core.web.downloads import respond_with_csv
from core.web.figure_files import respond_with_figure
from dynabench.cards import has_work_to_judge
from dynabench.catches.services import show_newest_catches
from dynabench.communities.selectors import find_communities
from dynabench.release_cards import ReleaseCard, build_release_card
from dynabench.samples import describe_sample
from dynabench.task_figures import build_task_figures
from evaluation.dataset_releases.reading import find_datasets_with_public_files
from leaderboard.arena.battles.past import build_past_battle
from leaderboard.arena.board import build_arena_lines, read_cached_table
from leaderboard.arena.figures import build_strength_axis, draw_strength_axis, draw_strengths
from leaderboard.arena.findings import describe_arena
from leaderboard.board.editions import describe_edition
from tasks.access import ALL_KINDS, find_task
from tasks.models import Round, Task
from tasks.permissions import can_download, can_edit, can_review
from tasks.selectors import find_opened_rounds
from tasks.targets.failures import find_failures
from validation.decisions.awaited import JUDGED_ROUND_STATES
from validation.statistics.cache import get_all_numbers
from validation.statistics.report import convert_to_json, flatten_row

NumberedRound = tuple[Round, CachedResult]
MAX_FIRST_MODELS = 3
"""The maximum number of models in the overview."""
MAX_NEWEST_CATCHES = 3
MAX_ARENA_MODELS = 5
"""The maximum number of models in the overview of an arena."""


@login_not_required
def show_overview(request: HttpRequest, code: str) -> HttpResponse:
    """Show the task's goal, its numbers of people and models, and its best models."""
    task = find_task(request, code, kinds=ALL_KINDS)
    rounds = find_opened_rounds([task])
    # A paused round is still the one that people write for.
    live_round = next((round for round in rounds if round.state in ("open", "paused")), None)
    description = ""
    if live_round:
        description = render_markdown(live_round.description)
    config, numbered_rounds = task.config, _pair_with_numbers(rounds)
    values: dict[str, Any] = {
        **_build_frame_values(request, task, "overview"),
        "communities": find_communities(task, request.user),
        "round": live_round,
        "is_judged": any(round.state in JUDGED_ROUND_STATES for round in rounds),
        "has_work": has_work_to_judge(
            get_person(request) if request.user.is_authenticated else None, task, rounds
        ),
        "can_edit": can_edit(request.user, task),
        "instructions": render_markdown(config.instructions),
        "description": description,
        "good": [describe_sample(config, case) for case in config.examples.good],
        "bad": [describe_sample(config, case) for case in config.examples.bad],
        "newest": next(reversed(numbered_rounds), None),
        "is_counting": len(numbered_rounds) < len(rounds),
        "share_scale": (0.0, 1.0),
        "gap": build_task_figures(numbered_rounds, get_today()).get("people-and-model"),
        "files": _build_chart_url_prefix(task),
        **_find_best_models(task),
        "newest_catches": show_newest_catches(request.user, task, MAX_NEWEST_CATCHES)
        if config.kind == "examples"
        else [],
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
    """Return the template's values: the best models by the owner's weights, and their axis.

    Those of an arena are in `ranking`, and `past` is one of its published battles.
    """
    if task.config.kind == "arena":
        return {"top": [], "past": build_past_battle(task), **_build_arena_ranking(task)}
    from leaderboard.board.first_models import rank_first_models  # it loads numpy

    board = rank_first_models(task)
    return {**board, "top": board["top"][:MAX_FIRST_MODELS]}


def _build_arena_ranking(task: Task) -> dict[str, Any]:
    """Return the values of the board's table with the first models.

    ranking: None without comparisons, and while a large table is computed for the first time; then
    `is_ranking` is true.
    """
    cached_table = read_cached_table(task)
    if cached_table is None:
        return {"ranking": None, "is_ranking": True}
    table = cached_table.numbers
    if not table["models"]:
        return {"ranking": None, "is_ranking": False}
    lines = build_arena_lines(table)
    # The finding counts all models, because more may share the first rank than are shown.
    names, ranks = zip(*[(line.model["name"], line.model["rank"]) for line in lines], strict=True)
    first_lines = lines[:MAX_ARENA_MODELS]
    axis = build_strength_axis(first_lines)
    ranking = {
        "page": draw_strengths(first_lines, axis),
        "axis": draw_strength_axis(axis),
        "finding": describe_arena(names, ranks),
        "table": table,
    }
    return {"ranking": ranking, "is_ranking": False}


@login_not_required
def show_task_data(request: HttpRequest, code: str) -> HttpResponse:
    """Show the task's rounds with their numbers and downloads, then authors and licence."""
    task = find_task(request, code, kinds=ALL_KINDS)
    about, may_take = task.config.about, can_download(request.user, task)
    values = {
        **_build_frame_values(request, task, "data"),
        "takes": may_take,
        "people": render_markdown(about.people),
        "ethics": render_markdown(about.ethics),
    }
    if task.config.kind != "arena":
        values |= _build_round_values(request, task, may_take)
    return render(request, "tasks/data.html", values)


def _build_round_values(request: HttpRequest, task: Task, may_take: bool) -> dict[str, Any]:
    """Return the template's values with the rounds, their numbers, datasets and charts."""
    rounds = find_opened_rounds([task])
    numbered_rounds = _pair_with_numbers(rounds)
    releases: Mapping[int, ReleaseCard] = {}
    if may_take:
        # Those who may not take the data see no links that would refuse them.
        releases = {
            dataset.round.pk: build_release_card(request, dataset)
            for dataset in find_datasets_with_public_files(rounds)
        }
    counts_by_round = {round.pk: counts for round, counts in numbered_rounds}
    return {
        "rounds": [
            (round, counts_by_round.get(round.pk), releases.get(round.pk))
            for round in reversed(rounds)
        ],
        "newest_release": next(iter(releases.values()), None),
        # Asked only where the page offers to follow.
        "follows": not releases and task.followers.filter(user=request.user.pk).exists(),
        "numbered": [(round, counts.numbers) for round, counts in numbered_rounds],
        "is_counting": len(numbered_rounds) < len(rounds),
        "has_examples": any(counts.numbers["collected"] for _round, counts in numbered_rounds),
        "counted_at": min((counts.counted_at for _round, counts in numbered_rounds), default=None),
        "figures": build_task_figures(numbered_rounds, get_today()),
        "files": _build_chart_url_prefix(task),
        "is_open": any(round.state == Round.State.OPEN for round in rounds),
    }


def _build_chart_url_prefix(task: Task) -> str:
    """Return the beginning of the URLs of the chart files."""
    return reverse("task-chart", args=[task.code, "x", "svg"]).removesuffix("x.svg")


@login_not_required
def send_task_chart(request: HttpRequest, code: str, name: str, format: str) -> HttpResponse:
    """Return a chart of the task's rounds as a file."""
    task = find_task(request, code)
    # As on the page, so that a file never says something else.
    figures = build_task_figures(_pair_with_numbers(find_opened_rounds([task])), get_today())
    return respond_with_figure(
        request,
        figures,
        name,
        format,
        prefix=task.code,
        page=reverse("task-data", args=[code]),
        edition=describe_edition(task),
    )


@login_not_required
def export_numbers(request: HttpRequest, code: str, kind: str) -> HttpResponse:
    """Download all numbers of each round as JSON, or as CSV with one line per round.

    While a large round is counted for the first time, the status is 503.
    """
    task = find_task(request, code)
    rows = _build_number_rows(task)
    if rows is None:
        message = _("We're still calculating these numbers. Try again in a minute.")
        response = HttpResponse(
            f"{message}\n", status=503, content_type="text/plain; charset=utf-8"
        )
        # Programs wait as long as the sentence tells people to.
        response["Retry-After"] = "60"
        return response
    if kind == "json":
        return JsonResponse({"task": task.code, "rounds": rows})
    lines: list[Any] = [["round"]]
    table = [flatten_row(row) for row in rows]
    if table:
        # The columns of all rounds, in order: only rounds with a sample have its size.
        columns = list(dict.fromkeys(name for row in table for name in row))
        lines = [columns]
        lines += [[row.get(name) for name in columns] for row in table]
    return respond_with_csv(lines, f"{task.code}-numbers.csv")


def _build_number_rows(task: Task) -> list[dict[str, Any]] | None:
    """Return the rounds' numbers; None while a round is counted for the first time."""
    rounds = find_opened_rounds([task])
    cached_numbers = get_all_numbers(rounds)
    if len(cached_numbers) < len(rounds):
        return None
    rows = []
    for round in rounds:
        round_numbers = cached_numbers[round.pk]
        row_key = {"round": round.number, "counted_at": round_numbers.counted_at}
        rows.append({**row_key, **convert_to_json(round_numbers.numbers)})
    return rows


def _pair_with_numbers(rounds: Sequence[Round]) -> list[NumberedRound]:
    """Return (round, numbers) for the rounds whose numbers have been counted."""
    counts = get_all_numbers(rounds)
    return [(round, counts[round.pk]) for round in rounds if round.pk in counts]

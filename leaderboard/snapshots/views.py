"""Pages of boards, of their snapshots for citations, and of a board's first models in a frame."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.accounts.people import get_person
from core.figures.rows import PERCENT_AXIS, AxisRow, draw_axis, draw_row
from core.web.htmx import get_form_status
from core.web.refusals import show_as_form_error, show_as_message
from dynabench.middleware import build_policy_header
from evaluation.submissions.selectors import build_public_condition, count_models
from evaluation.templatetags.model_words import metric as in_words
from leaderboard.arena.board import ArenaSize, count_sizes, find_cached_table
from leaderboard.arena.views import FILES as ARENA_FILES
from leaderboard.arena.views import build_board_values
from leaderboard.board.exports import (
    Table,
    describe_table_formula,
    select_provisional_sets,
    write_snapshot_bibtex,
)
from leaderboard.board.previews import BoardPreview, PreviewLine, read_previews
from leaderboard.board.views import FILES, build_file_response
from leaderboard.models import Board, Snapshot
from leaderboard.snapshots import services
from leaderboard.snapshots.diff import describe_changes
from tasks.access import ALL_KINDS, find_task, find_task_and_editor, require_permission
from tasks.models import Round, Task
from tasks.permissions import can_edit
from tasks.selectors import find_visible_tasks


class SnapshotForm(forms.Form):
    """A form for the title and description of a snapshot."""

    title = forms.CharField(max_length=150, required=False, label=_("Title"))
    description = forms.CharField(max_length=500, required=False, label=_("Description"))


LIST_ROW_HEIGHT = 56
"""The height of a row in the list of boards, in pixels."""


@dataclass(frozen=True)
class ListedBoard:
    """A task's board in the list of all boards.

    preview: its first models. models: the number of models that it ranks. size: the numbers of an
    arena. is_open: whether a round of the task is open. arena_table: the cached ranking of an
    arena; None while it is not cached.
    """

    task: Task
    preview: BoardPreview | None
    models: int
    size: ArenaSize | None
    is_open: bool
    arena_table: Table | None = None

    @property
    def arena_leaders(self) -> list[str]:
        """Return the names of the models that share rank 1 of an arena."""
        # Until an arena is ranked for the first time, its line has numbers alone.
        models = self.arena_table["models"] if self.arena_table else []
        return [model["name"] for model in models if model["rank"] == 1]

    @property
    def is_empty(self) -> bool:
        """Return whether no model was submitted; an arena is empty without comparisons."""
        return not self.models and not (self.size and self.size.comparisons)

    @property
    def leader(self) -> PreviewLine | None:
        """Return the first model of the board; None if no model is ranked."""
        return self.preview.lines[0] if self.preview and self.preview.lines else None

    @property
    def plot(self) -> SafeString:
        """Return the leader's score on the axis of all boards; "" if missing or off the axis."""
        leader = self.leader
        if leader is None:
            return SafeString("")
        # Scores by exchange rates may be outside the axis, where a dot would be wrong.
        ends = [end for end in (leader.value, leader.least, leader.most) if end is not None]
        if not ends or min(ends) < PERCENT_AXIS.low or max(ends) > PERCENT_AXIS.high:
            return SafeString("")
        row = AxisRow(
            name=leader.model,
            value=leader.value,
            low=leader.low,
            high=leader.high,
            range_low=leader.least,
            range_high=leader.most,
        )
        return draw_row(row, PERCENT_AXIS, LIST_ROW_HEIGHT)


@login_not_required
@require_safe
def show_boards(request: HttpRequest) -> HttpResponse:
    """Show the boards of all tasks that the person may see, with their first models."""
    tasks = list(find_visible_tasks(request.user))
    previews, sizes = read_previews(tasks), count_sizes(tasks)
    model_counts = dict(count_models(tasks))
    for pk, size in sizes.items():
        model_counts[pk] = size.models
    open_rounds = Round.objects.filter(task__in=tasks, state=Round.State.OPEN)
    open_task_ids = set(open_rounds.values_list("task", flat=True))
    boards = []
    for task in tasks:
        board = ListedBoard(
            task=task,
            preview=previews.get(task.pk),
            models=model_counts.get(task.pk, 0),
            size=sizes.get(task.pk),
            is_open=task.pk in open_task_ids,
            # Only cached: a list does not rank all arenas.
            arena_table=find_cached_table(task) if task.pk in sizes else None,
        )
        boards.append(board)
    boards.sort(key=lambda board: -board.models)
    values = {
        "boards": boards,
        "filled_boards": [board for board in boards if not board.is_empty],
        "empty_boards": [board for board in boards if board.is_empty],
        "axis": draw_axis(PERCENT_AXIS),
    }
    return render(request, "leaderboard/index.html", values)


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_snapshots(request: HttpRequest, code: str) -> HttpResponse:
    """List all snapshots of a task's board, newest first; its owners can take a new one."""
    task = find_task(request, code, kinds=ALL_KINDS)
    may_take = can_edit(request.user, task)
    form = SnapshotForm(request.POST if request.method == "POST" else None)
    if request.method == "POST":
        require_permission(request.user, task, can_edit)
        if form.is_valid() and (snapshot := _take_snapshot(request, task, form)):
            return redirect("leaderboard:snapshot", code, snapshot.number)
    frozen_board = None  # owners may freeze its rates again
    if may_take:
        frozen_board = Board.objects.filter(task=task).exclude(rates={}).first()
    # A whole board, and the task's configuration.
    rows = task.snapshots.defer("table", "config_text")
    values = {
        "task": task,
        "snapshots": rows,
        "form": form,
        "may_take": may_take,
        "board": frozen_board,
    }
    status = get_form_status(form)
    return render(request, "leaderboard/snapshots.html", values, status=status)


def _take_snapshot(request: HttpRequest, task: Task, form: SnapshotForm) -> Snapshot | None:
    """Take the snapshot; if it is refused, add the reason to the form and return None."""
    with show_as_form_error(form):
        return services.take_snapshot(task=task, actor=get_person(request), **form.cleaned_data)
    return None


@require_POST
def refreeze_board_rates(request: HttpRequest, code: str) -> HttpResponse:
    """Freeze the exchange rates again, and show the snapshot taken afterwards."""
    task, user = find_task_and_editor(request, code)
    with show_as_message(request):
        snapshot = services.refreeze_rates(task=task, actor=user)
        text = gettext("Exchange rates frozen again. We took this snapshot.")
        messages.success(request, text)
        return redirect("leaderboard:snapshot", code, snapshot.number)
    return redirect("leaderboard:snapshots", code)


@login_not_required
@require_safe
def show_snapshot(request: HttpRequest, code: str, number: int) -> HttpResponse:
    """Show a snapshot's numbers, digest, citation and changes; with `format`, return a file."""
    task = find_task(request, code, kinds=ALL_KINDS)
    stored_snapshot = get_object_or_404(task.snapshots, number=number)
    address, is_arena = request.build_absolute_uri(request.path), task.config.kind == "arena"
    if name := request.GET.get("format"):
        files = dict(ARENA_FILES if is_arena else FILES)
        files["bibtex"] = _build_bibtex_file(stored_snapshot)
        return build_file_response(
            stored_snapshot.table, name, f"{code}-leaderboard-{number}", address, files
        )
    previous_snapshot = task.snapshots.filter(number__lt=number).first()
    changes: list[str] = []
    if previous_snapshot:
        changes = describe_changes(previous_snapshot.table, stored_snapshot.table)
    values = {
        "task": task,
        "snapshot": stored_snapshot,
        "table": stored_snapshot.table,
        "last": previous_snapshot,
        "changes": changes,
        "bibtex": write_snapshot_bibtex(
            stored_snapshot.table, number, stored_snapshot.title, stored_snapshot.sha256, address
        ),
        "formula": describe_table_formula(
            stored_snapshot.table, translate=gettext, name_metric=in_words
        ),
        "provisional": select_provisional_sets(stored_snapshot.table.get("sets", ())),
        **(
            build_board_values(stored_snapshot.table)
            if is_arena
            else _build_lines(task, stored_snapshot.table)
        ),
    }
    if is_arena:
        return render(request, "leaderboard/arena_snapshot.html", values)
    return render(request, "leaderboard/snapshot.html", values)


def _build_bibtex_file(snapshot: Snapshot) -> tuple[Callable[[Table, str], str], str, str]:
    """Return the snapshot's BibTeX file as an entry of `leaderboard.board.views.FILES`."""
    number, title, sha256 = snapshot.number, snapshot.title, snapshot.sha256
    return (
        lambda table, address: write_snapshot_bibtex(table, number, title, sha256, address),
        "bib",
        "application/x-bibtex",
    )


def _build_lines(task: Task, table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the formatted rows, and the ids of models that still have a public page."""
    from leaderboard.board.cells import BoardScore, Cell
    from leaderboard.board.columns import LOWER_IS_BETTER_METRICS
    from leaderboard.board.figures import format_cell
    from leaderboard.board.page import list_column_heads

    metrics = table["metrics"]
    names = [metric["name"] for metric in metrics]
    less_is_better = set(LOWER_IS_BETTER_METRICS)
    less_is_better.update(
        metric["name"] for metric in metrics if not metric.get("higher_is_better", True)
    )
    heads = []
    for head, metric in zip(list_column_heads(names, less_is_better), metrics, strict=True):
        heads.append((*head, metric))
    lines = []
    for row in table["rows"]:
        score = format_cell("dynascore", BoardScore(**row["dynascore"]))
        cells = [(name, *format_cell(name, Cell(**row["metrics"][name]))) for name in names]
        lines.append((row, score, cells))
    # For models that have been withdrawn, only the name is shown.
    ids = [row["id"] for row in table["rows"]]
    public_ids = task.submissions.filter(build_public_condition(), pk__in=ids).values_list(
        "pk", flat=True
    )
    return {
        "lines": lines,
        "heads": heads,
        "listed": {str(pk) for pk in public_ids},
        # A column of dashes would take the room of a metric.
        "has_owners": any(row.get("owner") or row.get("team") for row in table["rows"]),
    }


@login_not_required
@require_safe
@xframe_options_exempt
def show_embedded_board(request: HttpRequest, code: str) -> HttpResponse:
    """Show the first five models on a small page that other sites can embed in a frame."""
    from leaderboard.board.first_models import rank_first_models

    task = find_task(request, code)
    response = render(request, "leaderboard/embed.html", {"task": task, **rank_first_models(task)})
    # Any site may embed this page in a frame, but no other page of ours.
    response["Content-Security-Policy"] = build_policy_header(frame_ancestors=["*"])
    return response

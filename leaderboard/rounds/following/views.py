"""The button that follows a task, the badge of a model, and the board at its lasting address."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_POST, require_safe

from core.accounts.people import get_person
from evaluation.submissions.visibility import find_submission
from leaderboard.board.exports import (
    Table,
    describe_early_set,
    have_same_values,
    write_snapshot_bibtex,
)
from leaderboard.rounds.following import services
from tasks.access import ALL_KINDS, find_task
from tasks.models import Task

SCHEMA_VERSION = 1
"""The version of docs/leaderboard.schema.json; a change that breaks readers raises it."""
LETTER_PIXELS, PADDING_PIXELS = (
    7,
    12,
)  # pixels: the width of a letter of the badge, and of the space around a text


@require_POST
def follow_task(request: HttpRequest, code: str) -> HttpResponse:
    """Follow or unfollow a task."""
    task = find_task(request, code, kinds=ALL_KINDS)
    follows = "follow" in request.POST
    services.set_follow(task=task, user=get_person(request), follows=follows)
    message = (
        _("You now follow this task. We'll email you when a round is released.")
        if follows
        else _("You no longer follow this task.")
    )
    messages.success(request, message)
    return redirect("task", code)


@login_not_required
@require_safe
@cache_control(public=True, max_age=300)
def draw_badge(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Draw a published model's rank as a badge for READMEs. It names the task, not the model.

    Raises Http404 for unpublished and withdrawn models.
    """
    from leaderboard.rounds.standing import find_model_standing  # which loads numpy

    submission, _viewer = find_submission(request, pk)
    if not submission.is_published or submission.withdrawn_at:
        raise Http404
    text, standing = "no rank yet", find_model_standing(submission, request.user)
    if standing and standing.row.rank:
        text = f"rank {standing.row.rank} of {standing.ranked_count}"
        if standing.provisional:
            text += f", {describe_early_set(asdict(standing.provisional[0]))}"
    values = build_badge_values(f"Dynabench {submission.task.name}", text)
    return render(request, "leaderboard/badge.svg", values, content_type="image/svg+xml")


def build_badge_values(name: str, rank_text: str) -> dict[str, Any]:
    """Return the two texts of a badge with their positions in pixels."""
    left_width, right_width = (
        LETTER_PIXELS * len(name) + PADDING_PIXELS,
        LETTER_PIXELS * len(rank_text) + PADDING_PIXELS,
    )
    return {
        "name": name,
        "said": rank_text,
        "left": left_width,
        "right": right_width,
        "width": left_width + right_width,
        "name_at": left_width // 2,
        "said_at": left_width + right_width // 2,
    }


@login_not_required
@require_safe
def export_board_json(request: HttpRequest, code: str) -> JsonResponse:
    """Export the public board with the owner's weights as JSON.

    docs/leaderboard.schema.json describes the format.
    """
    from leaderboard.board.tables import build_public_table  # which loads numpy

    task = find_task(request, code)
    table = build_public_table(task)
    body = {
        "schema_version": SCHEMA_VERSION,
        **table,
        "snapshot": _find_citation(request, task, table),
    }
    return JsonResponse(body, json_dumps_params={"ensure_ascii": False})


def _find_citation(request: HttpRequest, task: Task, table: Table) -> dict[str, Any] | None:
    """Return a citation of the newest snapshot, and whether the snapshot equals this table.

    None without a snapshot.
    """
    newest_snapshot = task.snapshots.first()
    if newest_snapshot is None:
        return None
    page = reverse("leaderboard:snapshot", args=[task.code, newest_snapshot.number])
    address = request.build_absolute_uri(page)
    return {
        "number": newest_snapshot.number,
        "url": address,
        "sha256": newest_snapshot.sha256,
        "bibtex": write_snapshot_bibtex(
            newest_snapshot.table,
            newest_snapshot.number,
            newest_snapshot.title,
            newest_snapshot.sha256,
            address,
        ),
        "is_current": have_same_values(newest_snapshot.table, table),
    }

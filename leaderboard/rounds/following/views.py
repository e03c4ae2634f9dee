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

from core.accounts.people import person
from evaluation.submissions.visibility import find_submission
from leaderboard.board.exports import Table, describe_early, shows_same, write_snapshot_bibtex
from leaderboard.rounds.following import services
from tasks.access import ALL_KINDS, find_task
from tasks.models import Task

SCHEMA_VERSION = 1
"""The version of docs/leaderboard.schema.json; a change that breaks readers raises it."""
LETTER, AROUND = 7, 12  # pixels: the width of a letter of the badge, and of the room around a text


@require_POST
def follow(request: HttpRequest, code: str) -> HttpResponse:
    """Follow or unfollow a task."""
    task = find_task(request, code, kinds=ALL_KINDS)
    follows = "follow" in request.POST
    services.follow(task=task, user=person(request), follows=follows)
    message = (
        _("You get a mail when a round is released.") if follows else _("No more mails of it.")
    )
    messages.success(request, message)
    return redirect("task", code)


@login_not_required
@require_safe
@cache_control(public=True, max_age=300)
def badge(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Draw a published model's rank as a badge for READMEs. It names the task, not the model."""
    from leaderboard.rounds.standing import find_model_standing  # loads numpy

    submission, _viewer = find_submission(request, pk)
    if not submission.is_published or submission.withdrawn_at:
        raise Http404
    text, standing = "no rank yet", find_model_standing(submission, request.user)
    if standing and standing.row.rank:
        text = f"rank {standing.row.rank} of {standing.ranked}"
        if standing.provisional:
            text += f", {describe_early(asdict(standing.provisional[0]))}"
    values = build_badge_values(f"Dynabench {submission.task.name}", text)
    return render(request, "leaderboard/badge.svg", values, content_type="image/svg+xml")


def build_badge_values(name: str, rank_text: str) -> dict[str, Any]:
    """Return the two texts of a badge with their positions in pixels."""
    left_width, right_width = LETTER * len(name) + AROUND, LETTER * len(rank_text) + AROUND
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
def board_json(request: HttpRequest, code: str) -> JsonResponse:
    """Export the public board by the owner's weights, as docs/leaderboard.schema.json describes."""
    from leaderboard.board.tables import build_public_table  # loads numpy

    task = find_task(request, code)
    table = build_public_table(task)
    body = {
        "schema_version": SCHEMA_VERSION,
        **table,
        "snapshot": _find_citation(request, task, table),
    }
    return JsonResponse(body, json_dumps_params={"ensure_ascii": False})


def _find_citation(request: HttpRequest, task: Task, table: Table) -> dict[str, Any] | None:
    """Return the newest snapshot, for the citation, and whether it equals this table."""
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
        "is_current": shows_same(newest_snapshot.table, table),
    }

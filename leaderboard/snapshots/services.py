"""Writes of snapshots. Modules that compute boards are imported late, because they load numpy."""

import hashlib
from datetime import date
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun
from evaluation.runs.selectors import find_accepted_models
from evaluation.submissions.selectors import build_public_condition
from leaderboard.arena.board import build_report_body, read_cached_table
from leaderboard.board.query import Mode
from leaderboard.board.services import freeze_rates
from leaderboard.models import Board, Snapshot
from leaderboard.ranking.weights import Weighting
from tasks.models import Task


def refreeze_rates(*, task: Task, actor: User | None) -> Snapshot:
    """Freeze the exchange rates again, and take a snapshot of the resulting board.

    Takes the locks of `freeze_rates`, then of `take_snapshot`. Raises Refused.
    """
    freeze_rates(task=task, actor=actor, may_replace=True)
    description = "Exchange rates were recalculated and frozen."
    return take_snapshot(task=task, actor=actor, description=description, mode="robust")


def take_snapshot(
    *,
    task: Task,
    actor: User | None,
    weighting: Weighting | None = None,
    title: str = "",
    description: str = "",
    mode: Mode | None = None,
) -> Snapshot:
    """Store the public board permanently, with the next snapshot number.

    weighting, mode: by default the owner's weights and the board's first formula. Locks the Task
    row, so that numbers are unique. Raises Refused if no model has a score.
    """
    from leaderboard.board.tables import build_public_table, compute_table_digest

    is_arena = task.config.kind == "arena"
    table = _build_arena_table(task) if is_arena else build_public_table(task, weighting, mode)
    # A snapshot is permanent, so an empty one is refused.
    if not any(row["rank"] for row in table["models" if is_arena else "rows"]):
        raise Refused(gettext("You can take a snapshot once a model has a score."))
    # So that the digest, which papers cite, also covers the configuration that scored it.
    table["config_sha256"] = hashlib.sha256(task.config_text.encode()).hexdigest()
    # The table is built before the lock, which is needed only to assign the number.
    with transaction.atomic():
        # If two snapshots are taken at once, the second waits, and gets the next number.
        Task.objects.select_for_update(of=("self",)).get(pk=task.pk)
        last_number = task.snapshots.aggregate(number=Max("number"))["number"] or 0
        snapshot = Snapshot.objects.create(
            task=task,
            number=last_number + 1,
            title=title,
            description=description,
            table=table,
            sha256=compute_table_digest(table),
            config_text=task.config_text,
            made_by=actor,
        )
        log(actor, "snapshot.taken", snapshot, sha256=snapshot.sha256)
    return snapshot


def _build_arena_table(task: Task) -> dict[str, Any]:
    """Return the board of an arena as it is shown. Raises Refused during its first computation."""
    cached_table = read_cached_table(task)
    if cached_table is None:
        raise Refused(gettext("We're still ranking the models. Try again in a minute."))
    from leaderboard.board.tables import compute_code_version

    return {**build_report_body(task, cached_table), "code": compute_code_version()}


def take_daily_snapshot(*, task: Task, day: date) -> Snapshot | None:
    """Store the board if it differs from the last snapshot; return None if none is taken.

    The board is checked once a day, and again each minute while it has scores but no ranks.
    Takes no lock until it calls `take_snapshot`: of two workers, only one marks the day.
    """
    from leaderboard.board.exports import have_same_values
    from leaderboard.board.tables import build_public_table

    # A worker checks each minute, so do not build a table for a board without scores.
    public_models = find_accepted_models(task).filter(build_public_condition())
    if not EvaluationRun.objects.filter(submission__in=public_models, outcome=Outcome.OK).exists():
        return None
    # By a conditional update, so that only one of several workers continues.
    is_marked = Board.objects.filter(task=task).exclude(looked_on=day).update(looked_on=day)
    if not is_marked:
        return None
    last_snapshot, table = task.snapshots.first(), build_public_table(task)
    if not any(row["rank"] for row in table["rows"]):
        # Reset, so that the first rank is noticed within the day.
        Board.objects.filter(task=task).update(looked_on=None)
        return None
    if last_snapshot and have_same_values(last_snapshot.table, table):
        return None
    return take_snapshot(task=task, actor=None)

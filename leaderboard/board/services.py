"""Writes of boards: resamples, exchange rates, and until when a board knows its runs.

What computes numbers is imported late: it loads numpy.
"""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from core.accounts.models import User
from core.accounts.services import log
from evaluation.models import EvaluationRun
from leaderboard.models import Board, Resample
from tasks.models import Task


def store_resamples(*, run: EvaluationRun, values: Mapping[str, bytes]) -> None:
    """Store a run's metrics on the resamples, by metric. No lock: `resample_once` suffices.

    Two workers compute the same values; the second's rows are ignored.
    """
    rows = [Resample(run=run, metric=metric, values=content) for metric, content in values.items()]
    # The same resamples give the same values, so either row is right.
    Resample.objects.bulk_create(rows, ignore_conflicts=True)


def note_renewed(*, task: Task, to: datetime) -> None:
    """Record the end time of the newest run that a task's board includes.

    No lock: if two workers overlap, at worst a run is checked again.
    """
    board, _created = Board.objects.get_or_create(task=task)
    # Workers that overlap may turn it back a little; then a run is only looked at again.
    if board.renewed_to is None or board.renewed_to < to:
        Board.objects.filter(pk=board.pk).update(renewed_to=to)


@transaction.atomic
def store_anchor_costs(
    *, task: Task, runner: str, rows: Mapping[str, Mapping[str, float | None]]
) -> Board:
    """Store the locally measured costs of the reference models as a new version.

    rows: throughput and memory by the model's name. This changes all anchored scores.
    Locks the Board row.
    """
    Board.objects.get_or_create(task=task)
    # Locked, so that two measurements never get the same version.
    board = Board.objects.select_for_update(of=("self",)).get(task=task)
    version = board.anchor_costs.get("version", 0) + 1
    board.anchor_costs = {"version": version, "runner": runner, "rows": rows}
    board.save(update_fields=["anchor_costs"])
    log(None, "board.anchors_measured", board, **board.anchor_costs)
    return board


def freeze_rates(
    *, task: Task, actor: User | None = None, may_replace: bool = False
) -> Board | None:
    """Freeze the exchange rates of the complete public models, and the runner of the costs.

    None if they are frozen already and `may_replace` is False.
    Locks the Board row. Raises Refused if models are too few.
    """
    from leaderboard.board.rates import read_rates

    # Computed before the lock, which would otherwise be held while the whole board is read.
    pool_rates = read_rates(task)
    Board.objects.get_or_create(task=task)
    with transaction.atomic():
        board = Board.objects.select_for_update(of=("self",)).get(task=task)
        # Looked at again under the lock: another worker may have frozen them first.
        if board.rates and not may_replace:
            return None
        board.rates, board.pool = dict(pool_rates.rates.values), list(pool_rates.rates.pool)
        board.frozen_at, board.is_sensitive = timezone.now(), pool_rates.is_sensitive
        board.runner = pool_rates.runner
        board.save(update_fields=["rates", "pool", "frozen_at", "is_sensitive", "runner"])
        log(actor, "board.frozen", board, pool=board.pool, rates=board.rates)
    return board

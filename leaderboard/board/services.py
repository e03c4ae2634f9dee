"""Writes of boards: resamples, exchange rates, measured costs, first models, last renewal.

Modules that compute numbers are imported late, because they load numpy.
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


def record_renewal(*, task: Task, renewed_to: datetime) -> None:
    """Record that a task's board includes all runs that ended until `renewed_to`.

    No lock: if two workers overlap, at worst a run is checked again.
    """
    board, _created = Board.objects.get_or_create(task=task)
    # Overlapping workers may set it back a little; then a run is only checked again.
    if board.renewed_to is None or board.renewed_to < renewed_to:
        Board.objects.filter(pk=board.pk).update(renewed_to=renewed_to)


def store_first_models(*, task: Task, board: Board | None = None) -> bool:
    """Store the first models of the public board for lists of tasks; return whether it changed.

    board: the task's Board row, if the caller has just read it.

    No lock: of two workers that overlap, both store what the board shows, and the next call
    corrects an older value.
    """
    from leaderboard.board.first_models import build_listed_models, compute_board_state

    if board is None:
        board, _created = Board.objects.get_or_create(task=task)
    state = compute_board_state(task, board)
    # The digest takes a few queries; the numbers of a large board take seconds.
    if board.first_models.get("state") == state:
        return False
    listed_models = build_listed_models(task)
    is_same = board.first_models.get("rows") == listed_models["rows"]
    changed_at = board.first_models["changed_at"] if is_same else timezone.now().isoformat()
    first_models = {**listed_models, "state": state, "changed_at": changed_at}
    Board.objects.filter(pk=board.pk).update(first_models=first_models)
    return not is_same


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
    """Freeze the exchange rates of the public models that have all results.

    Also records which runner measured their costs. Returns the board, or None if rates are frozen
    already and `may_replace` is False. Locks the Board row. Raises Refused if there are too few
    such models, or if they show no exchange rate.
    """
    from leaderboard.board.rates import compute_pool_rates

    # Computed before the lock, so that nobody waits while the whole board is read.
    pool_rates = compute_pool_rates(task)
    Board.objects.get_or_create(task=task)
    with transaction.atomic():
        board = Board.objects.select_for_update(of=("self",)).get(task=task)
        # Checked again under the lock, because another worker may have frozen them first.
        if board.rates and not may_replace:
            return None
        board.rates, board.pool = dict(pool_rates.rates.values), list(pool_rates.rates.pool)
        board.frozen_at, board.is_sensitive = timezone.now(), pool_rates.is_sensitive
        board.runner = pool_rates.runner
        board.save(update_fields=["rates", "pool", "frozen_at", "is_sensitive", "runner"])
        log(actor, "board.frozen", board, pool=board.pool, rates=board.rates)
    return board

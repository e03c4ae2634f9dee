"""Writes of this stage. What needs the numbers of a board imports them late: they load numpy."""

import re
from collections.abc import Mapping
from datetime import date, datetime

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext

from dynabench.accounts.models import Annotator, User
from dynabench.accounts.services import log
from dynabench.lib.errors import Refused
from evaluation.models import EvaluationRun
from leaderboard.models import Board, Resample, Snapshot, WeeklyGoal, Weights
from leaderboard.people.goals import monday
from leaderboard.scoring.weights import Weighting, check
from tasks.models import Task

FORK = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
LONGEST_NAME = 60
POOL = 3
"""Complete models that exchange rates are frozen on, at least."""


def set_weekly_goal(*, annotator: Annotator, amount: int) -> WeeklyGoal:
    """What the annotator wants to do from this week on; 0 pauses. The last save of a week wins."""
    week = monday(timezone.now().date())
    return WeeklyGoal.objects.update_or_create(
        annotator=annotator, week=week, defaults={"amount": amount}
    )[0]


def forget_goals(*, annotator: Annotator) -> None:
    """Remove the weekly goals of somebody who has left; no lock."""
    WeeklyGoal.objects.filter(annotator=annotator).delete()


@transaction.atomic
def save_weights(
    *, task: Task, owner: User, name: str, weighting: Weighting, description: str = ""
) -> Weights:
    """Keep weights under a name, as a fork of the board; one's own of that name are replaced.

    No lock: `weights_one_name` holds. Raises Refused.
    """
    if len(name) > LONGEST_NAME or not FORK.fullmatch(name):
        raise Refused(
            gettext(
                "“%(name)s” is no name for weights. Use lower-case letters, digits and single "
                "hyphens, at least one letter, such as speed-first."
            )
            % {"name": name[:LONGEST_NAME]},
            field="name",
        )
    check(weighting)
    told = {
        "description": description,
        "metrics": dict(weighting.metrics),
        "evaluation_sets": dict(weighting.sets),
    }
    if Weights.objects.filter(task=task, name=name, owner=owner).update(**told):
        return Weights.objects.get(task=task, name=name)
    try:
        with transaction.atomic():
            return Weights.objects.create(task=task, name=name, owner=owner, **told)
    except IntegrityError:
        raise Refused(
            gettext("Somebody else has weights named %(name)s in this task. Take another name.")
            % {"name": name},
            field="name",
        ) from None


@transaction.atomic
def delete_weights(*, weights: Weights, actor: User) -> None:
    """Remove a fork; its address opens nothing any more. No lock."""
    log(actor, "weights.deleted", weights)
    weights.delete()


def store_resamples(*, run: EvaluationRun, values: Mapping[str, bytes]) -> None:
    """Keep a run's metrics on the resamples, by metric. No lock: `resample_once` holds.

    Two workers store the same values; those of the second are dropped.
    """
    Resample.objects.bulk_create(
        [Resample(run=run, metric=metric, values=some) for metric, some in values.items()],
        ignore_conflicts=True,
    )


def note_renewed(*, task: Task, to: datetime) -> None:
    """Note until when the board of a task knows its runs. No lock: later ones only go forward."""
    board, _ = Board.objects.get_or_create(task=task)
    if board.renewed_to is None or board.renewed_to < to:
        Board.objects.filter(pk=board.pk).update(renewed_to=to)


def freeze_rates(*, task: Task, actor: User | None = None, anew: bool = False) -> Board | None:
    """Freeze the exchange rates that the complete public models show, and whose costs are compared.

    Locks the Board row.

    None: they are frozen already, and not wanted anew. Raises Refused with too few models.
    """
    from leaderboard.snapshots.rates import found_rates

    found = found_rates(task)
    Board.objects.get_or_create(task=task)
    with transaction.atomic():
        board = Board.objects.select_for_update(of=("self",)).get(task=task)
        if board.rates and not anew:
            return None
        board.rates, board.pool = dict(found.rates.values), [*found.rates.pool]
        board.frozen_at, board.is_sensitive = timezone.now(), found.is_sensitive
        board.runner = found.runner
        board.save(update_fields=["rates", "pool", "frozen_at", "is_sensitive", "runner"])
        log(actor, "board.frozen", board, pool=board.pool, rates=board.rates)
    return board


def refreeze_rates(*, task: Task, actor: User | None) -> Snapshot:
    """Freeze the exchange rates anew, which changes all scores, and take a snapshot of the result.

    Locks: `freeze_rates`, then `take_snapshot`. Raises Refused.
    """
    freeze_rates(task=task, actor=actor, anew=True)
    return take_snapshot(task=task, actor=actor, description="Exchange rates were frozen anew.")


def take_snapshot(
    *,
    task: Task,
    actor: User | None,
    weighting: Weighting | None = None,
    title: str = "",
    description: str = "",
) -> Snapshot:
    """Keep the public board for ever, under the owner's weights or others. Locks the Task row.

    The lock gives numbers without gaps or doubles. Raises Refused without scores.
    """
    from leaderboard.board.tables import digest
    from leaderboard.snapshots.rates import public_table

    table = public_table(task, weighting)
    if not any(row["rank"] for row in table["rows"]):
        raise Refused(gettext("No model has a score yet, so there is nothing to keep."))
    with transaction.atomic():
        Task.objects.select_for_update(of=("self",)).get(pk=task.pk)
        last = task.snapshots.aggregate(number=Max("number"))["number"] or 0
        snapshot = Snapshot.objects.create(
            task=task,
            number=last + 1,
            title=title,
            description=description,
            table=table,
            sha256=digest(table),
            made_by=actor,
        )
        log(actor, "snapshot.taken", snapshot, sha256=snapshot.sha256)
    return snapshot


def take_daily_snapshot(*, task: Task, day: date) -> Snapshot | None:
    """Keep the board if it is another one than in the last snapshot; looked at once a day.

    No lock: of two workers one marks the day. Then as `take_snapshot`.
    """
    from leaderboard.snapshots.diff import is_same
    from leaderboard.snapshots.rates import public_table

    marked = Board.objects.filter(task=task).exclude(looked_on=day).update(looked_on=day)
    if not marked:
        return None
    last, table = task.snapshots.first(), public_table(task)
    has_scores = any(row["rank"] for row in table["rows"])
    if not has_scores or (last and is_same(last.table, table)):
        return None
    return take_snapshot(task=task, actor=None)

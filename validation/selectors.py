"""Reads about judging."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotation.models import Example
from dynabench.accounts.models import Annotator
from tasks.models import Round, Task
from validation.models import Consensus, JudgeLease, QueueItem, Skip, Validation

UNDO_TIME = timedelta(minutes=10)
JUDGED_STATES = [Round.State.OPEN, Round.State.PAUSED, Round.State.CLOSED]


def rounds_to_judge(task: Task) -> Sequence[Round]:
    """The rounds that have a free place in their queue, oldest first: it is released first."""
    free = QueueItem.objects.filter(round=OuterRef("pk"), still_needed__gt=0, free__gt=0)
    return list(_judged_rounds(task).filter(Exists(free)))


def rounds_to_fill(task: Task) -> Sequence[Round]:
    """The rounds with examples that nobody has looked at to queue them, oldest first."""
    seen = Coalesce(OuterRef("judging__filled_to"), 0)
    unseen = Example.objects.filter(round=OuterRef("pk"), pk__gt=seen)
    return list(_judged_rounds(task).filter(Exists(unseen)))


def _judged_rounds(task: Task) -> QuerySet[Round]:
    rounds = task.rounds.filter(state__in=JUDGED_STATES)
    return rounds.select_related("task").order_by("number")


def queue(round: Round, validator: Annotator, avoid: int | None = None) -> QuerySet[QueueItem]:
    """What the validator may be given in the round, nearly decided first, then by chance.

    Walks the index queue_order: a row of it is looked at, and taken, unless the validator wrote,
    judged or skipped that example or it is by the author `avoid`.
    """
    this = {"example": OuterRef("example"), "validator": validator}
    return (
        QueueItem.objects.filter(
            ~Exists(Validation.objects.filter(**this)),
            ~Exists(Skip.objects.filter(**this)),
            round=round,
            still_needed__gt=0,
            free__gt=0,
            example__retracted_at__isnull=True,
        )
        .exclude(author__in=[validator.pk, *([avoid] if avoid else [])])
        .order_by("still_needed", "key")
    )


def latest_lease(validator: Annotator, task: Task) -> JudgeLease | None:
    """What the validator was handed last in this task; it is current while `until` lies ahead."""
    leases = JudgeLease.objects.filter(validator=validator, example__round__task=task)
    return leases.select_related("example__context", "example__round").order_by("-until").first()


def last_vote(validator: Annotator, task: Task) -> Validation | None:
    """The vote that can still be taken back."""
    votes = Validation.objects.filter(
        validator=validator,
        example__round__task=task,
        is_imported=False,
        created_at__gt=timezone.now() - UNDO_TIME,
    )
    return votes.select_related("example").order_by("-created_at").first()


def judged_today(validator: Annotator, task: Task) -> int:
    """How many examples of the task the validator has judged since 00:00 UTC."""
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    votes = Validation.objects.filter(validator=validator, created_at__gte=midnight)
    return votes.filter(example__round__task=task).count()


def round_numbers(*rounds: Round) -> Mapping[int, Mapping[str, int]]:
    """By round id: collected, fooled, judged, decided, verified and validated_errors.

    Without retracted examples. One query, whatever the number of rounds.
    """
    decided = Q(consensus__state=Consensus.State.DECIDED)
    rows = (
        Example.objects.filter(round__in=rounds, retracted_at__isnull=True)
        .values("round")
        .annotate(
            collected=Count("pk"),
            fooled=Count("pk", filter=Q(outcome=Example.Outcome.FOOLED)),
            judged=Count("pk", filter=Q(consensus__votes__gt=0)),
            decided=Count("pk", filter=decided),
            verified=Count("pk", filter=Q(consensus__is_verified=True)),
            validated_errors=Count("pk", filter=Q(consensus__is_validated_error=True)),
        )
        .order_by()
    )
    names = ("collected", "fooled", "judged", "decided", "verified", "validated_errors")
    found = {
        pk: dict(zip(names, counts, strict=True))
        for pk, *counts in rows.values_list("round", *names)
    }
    return {round.pk: found.get(round.pk, dict.fromkeys(names, 0)) for round in rounds}

"""Reads about examples."""

from collections.abc import Sequence

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from annotation.models import Assignment, Attempt, Example, GatePass
from dynabench.accounts.models import Annotator
from tasks.models import Context, Round, Task


def current_assignment(annotator: Annotator, round: Round) -> Assignment | None:
    """What the annotator works on in this round."""
    return (
        Assignment.objects.filter(annotator=annotator, round=round, left_at__isnull=True)
        .select_related("context", "parent", "annotator", "round__task")
        .first()
    )


def has_passed_gate(annotator: Annotator, task: Task) -> bool:
    """Whether the annotator has accepted the task's content warning."""
    return GatePass.objects.filter(annotator=annotator, task=task).exists()


def least_used_contexts(round: Round) -> QuerySet[Context]:
    """The round's contexts, least handed out first, chance among equals."""
    return (
        round.contexts.filter(is_retired=False)
        .annotate(uses=Count("assignments"))
        .order_by("uses", "?")
    )


def goal_uses(round: Round) -> dict[str, int]:
    """How often each goal was handed out in the round."""
    rows = Assignment.objects.filter(round=round).values_list("goal").annotate(Count("pk"))
    return dict(rows)


def written_here(assignment: Assignment) -> int:
    """How many examples the annotator has written on this context."""
    mine = Example.objects.filter(annotator=assignment.annotator_id)
    return mine.filter(context=assignment.context_id).count()


def tries(assignment: Assignment) -> tuple[int, int]:
    """The annotator's examples on this context, and in this task since 00:00 UTC.

    What is just being sent counts too. Two queries.
    """
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    here, task = assignment.context_id, assignment.round.task_id
    written = Example.objects.filter(annotator=assignment.annotator_id).aggregate(
        here=Count("pk", filter=Q(context=here)),
        today=Count("pk", filter=Q(round__task=task, created_at__gte=midnight)),
    )
    asking = Attempt.objects.filter(
        annotator=assignment.annotator_id,
        state=Attempt.State.ASKING,
        asked_at__gte=Attempt.oldest_alive(),
    ).aggregate(
        here=Count("pk", filter=Q(assignment__context=here)),
        today=Count("pk", filter=Q(assignment__round__task=task)),
    )
    return written["here"] + asking["here"], written["today"] + asking["today"]


def twin(assignment: Assignment, digest: str) -> Example | None:
    """The example that the annotator already wrote with this text on this context."""
    return Example.objects.filter(
        annotator=assignment.annotator_id,
        round=assignment.round_id,
        context=assignment.context_id,
        digest=digest,
        retracted_at__isnull=True,
    ).first()


def history(annotator: Annotator, context: Context) -> Sequence[Example]:
    """The annotator's examples on one context, oldest first."""
    return list(Example.objects.filter(annotator=annotator, context=context).order_by("pk"))


def is_judged(example: Example) -> bool:
    """Whether anybody has voted on it.

    Votes are a later stage's rows; `validations` is the name that they give their link here.
    """
    return Example.objects.filter(pk=example.pk, validations__isnull=False).exists()


def rounds_with_counts(tasks: Sequence[Task], *, latest_only: bool = True) -> dict[int, Round]:
    """The rounds of the tasks, each with `collected`, `fooled` (not retracted) and `target_names`.

    Keyed by task with the latest round that people have seen, or by round number with all of them.
    Two queries, whatever the number of tasks.
    """
    kept = Q(examples__retracted_at__isnull=True)
    rounds = (
        Round.objects.filter(task__in=tasks)
        .exclude(state__in=[Round.State.DRAFT, Round.State.READY])
        .annotate(
            collected=Count("examples", filter=kept),
            fooled=Count("examples", filter=kept & Q(examples__outcome=Example.Outcome.FOOLED)),
        )
        .prefetch_related("round_targets__target")
        .order_by("number")
    )
    return {round.task_id if latest_only else round.number: round for round in rounds}


def parent_candidates(annotator: Annotator, round: Round) -> QuerySet[Example]:
    """Others' examples that may be changed minimally, least changed first."""
    return (
        Example.objects.filter(round=round, retracted_at__isnull=True, parent__isnull=True)
        .exclude(annotator=annotator)
        .annotate(changes=Count("retries"))
        .order_by("changes", "?")
    )


def is_newcomer(annotator: Annotator, task: Task) -> bool:
    """Whether the instructions should stand open: on the first three examples."""
    return Example.objects.filter(annotator=annotator, round__task=task).count() < 3

"""Writes that begin and end an owner's blind judging of their task."""

from itertools import islice

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Example, ShownExample
from annotation.shown_services import note_shown_examples
from core.accounts.models import Annotator, User
from core.accounts.services import get_annotator, log
from core.errors import Refused
from tasks.config.schema import TaskConfig
from tasks.models import BlindJudging, Round, Task, TaskMember
from tasks.permissions import can_judge_as_owner
from validation.models import OwnerDecision, Validation

# The rows of one insert; a task may have a million examples.
BATCH_EXAMPLES = 5000


def begin_blind_judging(*, task: Task, owner: User) -> BlindJudging:
    """Let an owner judge their task, and hide labels and votes from them until they end it.

    They never judge examples whose labels or votes they could read before. The first transaction
    hides everything. The second records the examples that reveal a label or vote. Only then may
    the owner vote, so they cannot read a vote that arrives between the two. If the second one
    fails, call this function again. Locks the member, so that two tabs begin it once. Raises
    Refused.
    """
    if not can_judge_as_owner(owner, task):
        raise Refused(
            _("Blind judging is for owners of this task. Ask an owner for a role that can judge."),
            code="owners",
        )
    annotator = get_annotator(owner)
    row = _begin_blind_period(task, owner, annotator)
    # Also completes an earlier attempt that was interrupted.
    if row.noted_at is None:
        with transaction.atomic():
            note_readable_examples(annotator, select_readable_examples(task, annotator))
            # In the transaction that records them: `noted_at` means that all are recorded.
            BlindJudging.objects.filter(pk=row.pk).update(noted_at=timezone.now())
    _clear_cached_roles(task)
    return row


@transaction.atomic
def _begin_blind_period(task: Task, owner: User, annotator: Annotator) -> BlindJudging:
    """Begin a period of blind judging, or return the current one."""
    # A second tab waits here, and finds that the period has begun.
    members = TaskMember.objects.select_for_update(of=("self",), no_key=True)
    member = members.get(task=task, user=owner)
    if not member.is_blind:
        _end_open_periods(task, owner)  # of a role that has ended
        BlindJudging.objects.create(task=task, annotator=annotator)
        member.is_blind = True
        member.save(update_fields=["is_blind"])
        log(owner, "blind.began", task)
    return BlindJudging.objects.get(task=task, annotator=annotator, ended_at=None)


@transaction.atomic
def end_blind_judging(*, task: Task, owner: User) -> None:
    """End an owner's blind judging, so that they see labels and votes again.

    Two updates, no lock.
    """
    # If two tabs end it at once, only the first is stored and logged.
    if TaskMember.objects.filter(task=task, user=owner, is_blind=True).update(is_blind=False):
        log(owner, "blind.ended", task)
    _end_open_periods(task, owner)
    _clear_cached_roles(task)


def _end_open_periods(task: Task, owner: User) -> None:
    open_periods = BlindJudging.objects.filter(task=task, annotator__user=owner, ended_at=None)
    open_periods.update(ended_at=timezone.now())


def _clear_cached_roles(task: Task) -> None:
    # The role is cached on the task, but what the owner may read has changed.
    task.roles.clear()
    task.blind_owners.clear()


def select_readable_examples(task: Task, annotator: Annotator) -> QuerySet[Example]:
    """Select the examples to judge whose author's label or votes the person could read.

    Rows that were imported without any label and have no vote reveal nothing.
    """
    example_filter = {"example": OuterRef("pk")}
    # A person's own vote reveals nothing to them.
    votes = Validation.objects.filter(**example_filter).exclude(validator=annotator)
    decisions = OwnerDecision.objects.filter(**example_filter)
    is_revealing = build_claim_condition(task.config) | Exists(votes) | Exists(decisions)
    rows = Example.objects.filter(is_revealing, round__task=task)
    is_by_another = Q(annotator=None) | ~Q(annotator=annotator)
    # Released examples are no longer judged, so they need not be recorded.
    return rows.filter(is_by_another).exclude(round__state=Round.State.RELEASED)


def build_claim_condition(config: TaskConfig) -> Q:
    """Return the condition that an example has a claim that is hidden from judges."""
    hidden_names = [field.name for field in config.input if field.name not in config.judged_fields]
    # Matches nothing: the start of a chain of conditions joined by OR.
    condition = Q(pk__in=[])
    for column, names in (
        ("inputs", hidden_names),
        ("metadata", [field.name for field in config.metadata.create]),
    ):
        for name in names:
            # A field can contain null, which reveals nothing.
            condition |= Q(**{f"{column}__has_key": name}) & ~Q(**{f"{column}__{name}": None})
    return condition


def note_readable_examples(annotator: Annotator, examples: QuerySet[Example]) -> None:
    """Record that the person could read these examples; see `note_shown_examples`."""
    # In batches of ids: a role may read all examples of a large task.
    ids = examples.values_list("pk", flat=True).iterator(chunk_size=BATCH_EXAMPLES)
    while chunk := list(islice(ids, BATCH_EXAMPLES)):
        note_shown_examples(annotator=annotator, examples=chunk, way=ShownExample.Way.ROLE)

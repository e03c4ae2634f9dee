"""Writes: an owner of a task begins to judge it blindly, and ends that."""

from itertools import islice

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Example, ShownExample
from annotation.shown_services import note_shown_examples
from core.accounts.models import Annotator, User
from core.accounts.services import annotator_of, log
from core.errors import Refused
from tasks.config.schema import TaskConfig
from tasks.models import BlindJudging, Round, Task, TaskMember
from tasks.permissions import may_be_blind
from validation.models import OwnerDecision, Validation

# Rows of one insert, as a task may have a million examples.
BATCH = 5000


def begin_blind(*, task: Task, owner: User) -> BlindJudging:
    """Let an owner judge their task, and hide labels and votes from them until they end it.

    They never judge examples whose labels or votes they could read before. The first transaction
    hides everything; then examples that reveal a label or vote are recorded; only then may the
    owner vote. So they cannot read a vote that arrives between the two. If the second part fails,
    call again. Locks the member, so that two tabs begin it once. Raises Refused.
    """
    if not may_be_blind(owner, task):
        raise Refused(_("Only a member who owns this task can judge it blind."), code="owners")
    annotator = annotator_of(owner)
    row = _begin_blind_period(task, owner, annotator)
    # Also where an earlier attempt was interrupted, which is completed here.
    if row.noted_at is None:
        with transaction.atomic():
            note_told_examples(annotator, told_examples(task, annotator))
            # In the transaction that notes them: `noted_at` means that all are noted.
            BlindJudging.objects.filter(pk=row.pk).update(noted_at=timezone.now())
    _forget_roles(task)
    return row


@transaction.atomic
def _begin_blind_period(task: Task, owner: User, annotator: Annotator) -> BlindJudging:
    """Begin a period of blind judging, or return the current one."""
    # Of two tabs the second waits, and finds that the time has begun.
    members = TaskMember.objects.select_for_update(of=("self",), no_key=True)
    member = members.get(task=task, user=owner)
    if not member.is_blind:
        _end_times(task, owner)  # of a role that ended
        BlindJudging.objects.create(task=task, annotator=annotator)
        member.is_blind = True
        member.save(update_fields=["is_blind"])
        log(owner, "blind.began", task)
    return BlindJudging.objects.get(task=task, annotator=annotator, ended_at=None)


@transaction.atomic
def end_blind(*, task: Task, owner: User) -> None:
    """End an owner's blind judging, so that they see labels and votes again.

    Two updates, no lock.
    """
    # Of two tabs only the first ends it, and only that is logged.
    if TaskMember.objects.filter(task=task, user=owner, is_blind=True).update(is_blind=False):
        log(owner, "blind.ended", task)
    _end_times(task, owner)
    _forget_roles(task)


def _end_times(task: Task, owner: User) -> None:
    open_ones = BlindJudging.objects.filter(task=task, annotator__user=owner, ended_at=None)
    open_ones.update(ended_at=timezone.now())


def _forget_roles(task: Task) -> None:
    # Cached on the task for the request; what the owner may read has changed.
    task.roles.clear()
    task.blind_owners.clear()


def told_examples(task: Task, annotator: Annotator) -> QuerySet[Example]:
    """Select the examples to judge whose author's label or votes the person could read.

    Rows that were imported without any label and have no vote reveal nothing.
    """
    example_filter = {"example": OuterRef("pk")}
    # A person's own vote reveals nothing to them.
    votes = Validation.objects.filter(**example_filter).exclude(validator=annotator)
    decisions = OwnerDecision.objects.filter(**example_filter)
    tells = has_claim(task.config) | Exists(votes) | Exists(decisions)
    rows = Example.objects.filter(tells, round__task=task)
    others = Q(annotator=None) | ~Q(annotator=annotator)
    # Released examples are judged no more, so nothing need be noted of them.
    return rows.filter(others).exclude(round__state=Round.State.RELEASED)


def has_claim(config: TaskConfig) -> Q:
    """Return the condition that an example has a claim that is hidden from judges."""
    hidden = [field.name for field in config.input if field.name not in config.judged_fields]
    # Matches nothing, as the start of a chain of conditions joined by OR.
    condition = Q(pk__in=[])
    for holder, names in (
        ("inputs", hidden),
        ("metadata", [field.name for field in config.metadata.create]),
    ):
        for name in names:
            # A field can be there with null, which reveals nothing.
            condition |= Q(**{f"{holder}__has_key": name}) & ~Q(**{f"{holder}__{name}": None})
    return condition


def note_told_examples(annotator: Annotator, examples: QuerySet[Example]) -> None:
    """Record that the person could read these examples; see `note_shown_examples`."""
    ids = examples.values_list("pk", flat=True).iterator(chunk_size=BATCH)
    while some := list(islice(ids, BATCH)):
        note_shown_examples(annotator=annotator, examples=some, way=ShownExample.Way.ROLE)

"""Writes to many examples at once, a few hundred per transaction. Locks: docs/locking.md."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from django.db import connection, models, transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Example
from core.accounts.models import LogEntry, User
from core.accounts.services import log
from core.errors import Refused
from tasks.models import Round, Task
from validation.consensus.claims import find_accepting_vote, find_label_field, find_rejecting_vote
from validation.consensus.consensus import Vote
from validation.decisions.consensus_rows import derive_consensus_of_all
from validation.decisions.filter_forms import list_tags
from validation.models import ExampleTag, OwnerDecision

# Few enough that votes on these examples wait only briefly.
CHUNK_EXAMPLES = 500
MAX_EXAMPLES = 10_000
"""The most examples of one action."""
MAX_TAGS = 100
"""The most different tags in a task."""


class Action(models.TextChoices):
    """A reviewer's bulk action on examples."""

    ACCEPT = "accept", gettext_lazy("Accept the author's answer")
    REJECT = "reject", gettext_lazy("Reject")
    SEND_BACK = "send-back", gettext_lazy("Send back to the author")
    UNDECIDE = "undecide", gettext_lazy("Undo decision")
    TAG = "tag", gettext_lazy("Add a tag")
    UNTAG = "untag", gettext_lazy("Remove a tag")


DECIDING_ACTIONS = (Action.ACCEPT, Action.REJECT, Action.SEND_BACK)
TAG_ACTIONS = (Action.TAG, Action.UNTAG)
LOG_CODES = {
    Action.ACCEPT: "consensus.accepted",
    Action.REJECT: "consensus.rejected",
    Action.SEND_BACK: "consensus.sent_back",
    Action.UNDECIDE: "consensus.undecided",
    Action.TAG: "tag.added",
    Action.UNTAG: "tag.removed",
}
UNDO_ACTIONS = {
    **{LOG_CODES[action]: Action.UNDECIDE for action in DECIDING_ACTIONS},
    LOG_CODES[Action.TAG]: Action.UNTAG,
    LOG_CODES[Action.UNTAG]: Action.TAG,
}
"""The action that undoes another one, by the code of the latter in the log."""


class MatchesChanged(Refused):
    """Raised when the matching examples differ from those the reviewer saw; nothing was changed."""

    code = "changed"


class TooManyExamples(Refused):
    """Raised when an action selects too many examples; nothing was changed."""

    code = "too_many"


class NothingToUndo(Refused):
    """Raised when the person has no such action, or it cannot be undone."""

    code = "nothing_to_undo"


@dataclass(frozen=True)
class ActionRequest:
    """A requested bulk action. The author can read the reason.

    looked_at: when the reviewer saw the examples; examples decided since are not changed.
    """

    action: Action
    reason: str = ""
    tag: str = ""  # normalised by `normalise_tag`
    looked_at: datetime | None = None


class UnchangedExample(NamedTuple):
    """An example that was not changed, and the reason as a code and a sentence."""

    example: uuid.UUID
    code: str
    reason: str


@dataclass
class ActionResult:
    """The result of an action; `run` identifies it in the log."""

    action: Action
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    changed: int = 0
    left: list[UnchangedExample] = field(default_factory=list)


class MatchSummary(NamedTuple):
    """The number of matching examples, at most MAX_EXAMPLES + 1, and a token for the set."""

    number: int
    token: str


def count_matched(examples: QuerySet[Example]) -> MatchSummary:
    """Return the number of matching examples and the token that identifies them. One query."""
    limited_examples = examples.order_by("pk").values("pk")[: MAX_EXAMPLES + 1]
    # A different set of the same size almost always has a different sum of ids.
    count, total = limited_examples.aggregate(n=Count("pk"), total=Sum("pk")).values()
    return MatchSummary(count, f"{count}-{int(total or 0)}")


def find_still_matched(examples: QuerySet[Example], token: str) -> list[int]:
    """Return the ids of all matching examples if they are those the person saw.

    Raises MatchesChanged, TooManyExamples.
    """
    example_ids = list(examples.values_list("pk", flat=True)[: MAX_EXAMPLES + 1])
    if len(example_ids) > MAX_EXAMPLES:
        message = _("You can change at most %(number)d examples at a time. Narrow the filters.")
        raise TooManyExamples(message % {"number": MAX_EXAMPLES})
    if f"{len(example_ids)}-{sum(example_ids)}" != token:
        message = _(
            "Other examples match now (%(number)d in total). We changed nothing. Check "
            "the list, then try again."
        )
        raise MatchesChanged(message % {"number": len(example_ids)})
    return example_ids


def apply_action(
    *, task: Task, examples: Collection[int], actor: User, request: ActionRequest
) -> ActionResult:
    """Apply the action to each of the task's examples that allows it; list the others in `left`.

    Locks the examples of a round in the order of their ids, a few hundred at a time. Then locks the
    round. Each such batch is one transaction with its own log entry. Raises TooManyExamples.
    """
    if len(examples) > MAX_EXAMPLES:
        raise TooManyExamples(
            _("Choose at most %(number)d examples at a time.") % {"number": MAX_EXAMPLES}
        )
    if request.action == Action.TAG:
        _check_tags(task, request.tag)
    # By round for `groupby`; by id so that two runs cannot deadlock.
    task_examples = Example.objects.filter(pk__in=examples, round__task=task).order_by(
        "round", "pk"
    )
    result = ActionResult(request.action)
    # Each round separately, because a batch locks its round after its examples.
    for _round, rows in groupby(task_examples.values_list("round", "pk"), key=lambda row: row[0]):
        batch_ids = [example_id for _, example_id in rows]
        for start in range(0, len(batch_ids), CHUNK_EXAMPLES):
            _change_batch(task, batch_ids[start : start + CHUNK_EXAMPLES], actor, request, result)
    return result


def _check_tags(task: Task, name: str) -> None:
    tags = list_tags(task)
    if name not in tags and len(tags) >= MAX_TAGS:
        message = _("The task already has %(number)d tags, which is the maximum. Use one of them.")
        raise TooManyExamples(message % {"number": MAX_TAGS})


@transaction.atomic
def _change_batch(
    task: Task, batch_ids: Sequence[int], actor: User, request: ActionRequest, result: ActionResult
) -> None:
    rows = _lock_examples(task, batch_ids)
    # Under the locks, so that nothing is decided between this check and the change.
    facts = _BatchFacts.read(rows, request)
    unchanged = [
        UnchangedExample(row.uuid, *reason)
        for row in rows
        if (reason := _explain_refusal(row, request, facts))
    ]
    result.left += unchanged
    refused = {refusal.example for refusal in unchanged}
    rows = [row for row in rows if row.uuid not in refused]
    if not rows:
        return
    if request.action in TAG_ACTIONS:
        _tag_examples(rows, request)
    else:
        _decide_examples(rows, actor, request)
    result.changed += len(rows)
    logged_values = {
        name: getattr(request, name) for name in ("reason", "tag") if getattr(request, name)
    }
    example_ids, target = [row.pk for row in rows], f"{len(rows)} examples"
    # In the same transaction, so that undoing reverts exactly these changes.
    log(
        actor,
        LOG_CODES[request.action],
        target,
        about=task,
        run=result.run,
        examples=example_ids,
        **logged_values,
    )


def _lock_examples(task: Task, batch_ids: Sequence[int]) -> list[Example]:
    """Lock the examples, then their round, and return the examples as they are after locking.

    The round is locked so that it is not released before they are decided. See `lock_example`.
    """
    rows = Example.objects.filter(pk__in=batch_ids).order_by("pk")
    # SQLite has already locked the whole database.
    if connection.features.has_select_for_update:
        list(rows.select_for_update(no_key=True).values_list("pk"))
    examples = list(rows.select_related("annotator"))
    # A release of the round waits until these decisions are stored, or has preceded them.
    rounds = Round.objects.select_for_update(of=("self",), no_key=True)
    round = rounds.get(pk=examples[0].round_id)
    # Reuses the parsed configuration, which would otherwise be parsed again.
    round.task = task
    for row in examples:
        # All share the locked round: this saves queries, and its state cannot change.
        row.round = round
    return examples


class _BatchFacts(NamedTuple):
    """The facts about a batch of locked examples, as sets of their ids.

    decided: those that an owner has decided. decided_later: those that were decided since the
    reviewer saw them. tagged: those that have the tag.
    """

    decided: set[int]
    decided_later: set[int]
    tagged: set[int]

    @classmethod
    def read(cls, rows: Sequence[Example], request: ActionRequest) -> "_BatchFacts":
        # Tags do not change decisions, so decisions made since do not matter.
        if request.action in TAG_ACTIONS:
            tags = ExampleTag.objects.filter(example__in=rows, name=request.tag)
            return cls(set(), set(), set(tags.values_list("example", flat=True)))
        decisions = OwnerDecision.objects.filter(example__in=rows)
        decided_ids = set(
            decisions.filter(withdrawn_at__isnull=True).values_list("example", flat=True)
        )
        since = request.looked_at
        later_decisions = Q(created_at__gt=since) | Q(withdrawn_at__gt=since)
        decided_later = (
            decisions.filter(later_decisions).values_list("example", flat=True) if since else ()
        )
        return cls(decided_ids, set(decided_later), set())


def _explain_refusal(
    row: Example, request: ActionRequest, facts: _BatchFacts
) -> tuple[str, str] | None:
    """Return a code and a sentence if the example does not allow the action; None if it does."""
    message_values = {"number": row.round.number}
    if row.retracted_at:
        return "withdrawn", _("The example has been withdrawn.")
    if row.round.state == Round.State.RELEASED:
        message = _("Round %(number)d is released, so its decisions are final.")
        return "released", message % message_values
    if row.pk in facts.decided_later:
        return "changed", _("Someone else has decided this example since you opened the list.")
    match request.action:
        case Action.TAG if row.pk in facts.tagged:
            return "tagged", _("The example already has this tag.")
        case Action.UNTAG if row.pk not in facts.tagged:
            return "untagged", _("The example doesn't have this tag.")
        case Action.UNDECIDE if row.pk not in facts.decided:
            return "no_decision", _("No owner has decided this example yet.")
        case Action.ACCEPT if _find_accepting_vote(row) is None:
            return "unclaimed", _(
                "The author hasn't given a right answer. Decide the example on its own page."
            )
        case Action.SEND_BACK:
            return _explain_uncorrectable(row)
    return None


def _explain_uncorrectable(row: Example) -> tuple[str, str] | None:
    """Return a code and a sentence if the author cannot correct the example; None if they can."""
    if row.round.state not in (Round.State.OPEN, Round.State.PAUSED):
        message = _(
            "Round %(number)d is closed, so the author can't fix this example. Reject it instead."
        )
        return "closed", message % {"number": row.round.number}
    if row.annotator is None or row.annotator.user_id is None:
        return "no_author", _(
            "The author doesn't have an account here. Reject the example instead."
        )
    return None


def _find_accepting_vote(row: Example) -> Vote | None:
    config = row.round.task.config
    field = find_label_field(config)
    return find_accepting_vote(config, row.outcome, row.inputs.get(field) if field else None)


def _decide_examples(rows: Sequence[Example], actor: User, request: ActionRequest) -> None:
    """Store the owner's decisions on one round's locked examples, or let their votes decide."""
    old_status = OwnerDecision.objects.filter(example__in=rows, withdrawn_at__isnull=True)
    # Their examples are locked, so nobody else can decide them meanwhile.
    old_status.update(withdrawn_at=timezone.now())
    if request.action in DECIDING_ACTIONS:
        OwnerDecision.objects.bulk_create(_build_decision(row, actor, request) for row in rows)
    derive_consensus_of_all(rows)


def _build_decision(row: Example, actor: User, request: ActionRequest) -> OwnerDecision:
    choice = _find_accepting_vote(row) if request.action == Action.ACCEPT else None
    choice = choice or find_rejecting_vote(row.round.task.config, row)
    return OwnerDecision(
        example=row,
        owner=actor,
        label=choice.label or "",
        verdict=choice.verdict or "",
        reason=request.reason,
        is_sent_back=request.action == Action.SEND_BACK,
    )


def _tag_examples(rows: Sequence[Example], request: ActionRequest) -> None:
    if request.action == Action.TAG:
        tags = (ExampleTag(example=row, name=request.tag) for row in rows)
        # Examples that already have the tag are not changed.
        ExampleTag.objects.bulk_create(tags, ignore_conflicts=True)
    else:
        ExampleTag.objects.filter(example__in=rows, name=request.tag).delete()


def undo_action(*, task: Task, actor: User, run: str) -> ActionResult:
    """Undo the person's action with this run id, except for examples decided since.

    An earlier decision of an owner remains withdrawn: the votes decide again. Takes the locks of
    `apply_action`. Raises NothingToUndo.
    """
    entries = list(LogEntry.objects.filter(actor=actor, task=task.code, data__run=run))
    action = UNDO_ACTIONS.get(entries[0].action) if entries else None
    if action is None:
        raise NothingToUndo(_("You have no action to undo."))
    examples: list[int] = []
    for entry in entries:  # one entry for each batch of the run
        examples += entry.data["examples"]
    # Later decisions by others are kept.
    looked_at = max(entry.created_at for entry in entries)
    request = ActionRequest(action, tag=entries[0].data.get("tag", ""), looked_at=looked_at)
    return apply_action(task=task, examples=examples, actor=actor, request=request)

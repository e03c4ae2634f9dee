"""Writes about many examples at once, some hundred in each transaction. Locks: docs/locking.md."""

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
from validation.decisions.consensus_rows import derive_all
from validation.decisions.filter_forms import tags_of
from validation.models import ExampleTag, OwnerDecision

# Few enough that votes on these examples wait only for a moment.
CHUNK = 500
MAX_EXAMPLES = 10_000
"""Most examples of one action."""
MOST_TAGS = 100
"""Most different tags in a task."""


class Action(models.TextChoices):
    """A reviewer's bulk action on examples."""

    ACCEPT = "accept", gettext_lazy("Accept: the author is right")
    REJECT = "reject", gettext_lazy("Reject")
    SEND_BACK = "send-back", gettext_lazy("Send back to the author")
    UNDECIDE = "undecide", gettext_lazy("Let the votes decide again")
    TAG = "tag", gettext_lazy("Add a tag")
    UNTAG = "untag", gettext_lazy("Remove a tag")


DECIDING_ACTIONS = (Action.ACCEPT, Action.REJECT, Action.SEND_BACK)
TAGS = (Action.TAG, Action.UNTAG)
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
"""What takes an action back, by its word in the log."""


class Changed(Refused):
    """Raised when the matching examples differ from those the reviewer saw; nothing was changed."""

    code = "changed"


class TooMany(Refused):
    """Raised when an action selects too many examples; nothing was changed."""

    code = "too_many"


class NothingToUndo(Refused):
    """Raised when the person has no such action, or it cannot be undone."""

    code = "nothing_to_undo"


@dataclass(frozen=True)
class Wish:
    """A requested bulk action. The author can read the reason.

    looked_at: when the reviewer saw the examples; examples decided since are not changed.
    """

    action: Action
    reason: str = ""
    tag: str = ""  # as `normalise_tag` writes it
    looked_at: datetime | None = None


class Left(NamedTuple):
    """An example that was not changed, and the reason as a code and a sentence."""

    example: uuid.UUID
    code: str
    reason: str


@dataclass
class Done:
    """The result of an action; `run` identifies it in the log."""

    action: Action
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    changed: int = 0
    left: list[Left] = field(default_factory=list)


class Matched(NamedTuple):
    """The number of matching examples, at most MOST + 1, and a token that identifies the set."""

    number: int
    token: str


def count_matched(examples: QuerySet[Example]) -> Matched:
    """Count the examples that an action on all of them would change. One query."""
    some = examples.order_by("pk").values("pk")[: MAX_EXAMPLES + 1]
    # Another set of as many examples almost always has another sum of ids.
    count, total = some.aggregate(n=Count("pk"), total=Sum("pk")).values()
    return Matched(count, f"{count}-{int(total or 0)}")


def still_matched(examples: QuerySet[Example], token: str) -> list[int]:
    """Return the ids of all matching examples if they are those the person saw.

    Raises Changed, TooMany.
    """
    ids = list(examples.values_list("pk", flat=True)[: MAX_EXAMPLES + 1])
    if len(ids) > MAX_EXAMPLES:
        message = _("At most %(number)d examples at a time. Narrow the filters.")
        raise TooMany(message % {"number": MAX_EXAMPLES})
    if f"{len(ids)}-{sum(ids)}" != token:
        message = _(
            "Other examples match now than when you looked (now %(number)d). Nothing was changed. "
            "Look again, then repeat it."
        )
        raise Changed(message % {"number": len(ids)})
    return ids


def act_on(*, task: Task, examples: Collection[int], actor: User, wish: Wish) -> Done:
    """Apply the action to each of the task's examples that allows it; report the others.

    Locks the examples, a few hundred of a round at a time and in the order of their ids, then the
    round. Each such batch is one transaction with its own log entry. Raises TooMany.
    """
    if len(examples) > MAX_EXAMPLES:
        raise TooMany(_("At most %(number)d examples at a time.") % {"number": MAX_EXAMPLES})
    if wish.action == Action.TAG:
        _check_tags(task, wish.tag)
    # By round for `groupby`; by id so that two such walks never wait for each other.
    task_examples = Example.objects.filter(pk__in=examples, round__task=task).order_by(
        "round", "pk"
    )
    result = Done(wish.action)
    # Each round by itself, as a batch locks its round after its examples.
    for _round, rows in groupby(task_examples.values_list("round", "pk"), key=lambda row: row[0]):
        pks = [pk for _, pk in rows]
        for start in range(0, len(pks), CHUNK):
            _change_batch(task, pks[start : start + CHUNK], actor, wish, result)
    return result


def _check_tags(task: Task, name: str) -> None:
    tags = tags_of(task)
    if name not in tags and len(tags) >= MOST_TAGS:
        message = _("The task has %(number)d tags, the most there may be. Use one of them.")
        raise TooMany(message % {"number": MOST_TAGS})


@transaction.atomic
def _change_batch(task: Task, pks: Sequence[int], actor: User, wish: Wish, result: Done) -> None:
    rows = _lock_examples(task, pks)
    # Under the locks, so that no decision comes between this check and the change.
    facts = _BatchFacts.of(rows, wish)
    left = [Left(row.uuid, *why) for row in rows if (why := _explain_refusal(row, wish, facts))]
    result.left += left
    refused = {refusal.example for refusal in left}
    rows = [row for row in rows if row.uuid not in refused]
    if not rows:
        return
    if wish.action in TAGS:
        _tag(rows, wish)
    else:
        _decide(rows, actor, wish)
    result.changed += len(rows)
    logged_values = {name: getattr(wish, name) for name in ("reason", "tag") if getattr(wish, name)}
    ids, target = [row.pk for row in rows], f"{len(rows)} examples"
    # In the same transaction, so that undoing finds exactly what was done.
    log(
        actor,
        LOG_CODES[wish.action],
        target,
        about=task,
        run=result.run,
        examples=ids,
        **logged_values,
    )


def _lock_examples(task: Task, pks: Sequence[int]) -> list[Example]:
    """Lock the examples and return them as they are after locking; see `lock_example`.

    Then locks their round, so that it is not released before they are decided.
    """
    rows = Example.objects.filter(pk__in=pks).order_by("pk")
    # SQLite has locked the whole database.
    if connection.features.has_select_for_update:
        list(rows.select_for_update(no_key=True).values_list("pk"))
    examples = list(rows.select_related("annotator"))
    # A release of the round waits until these decisions are stored, or comes before them.
    rounds = Round.objects.select_for_update(of=("self",), no_key=True)
    round = rounds.get(pk=examples[0].round_id)
    round.task = task
    for row in examples:
        row.round = round
    return examples


class _BatchFacts(NamedTuple):
    """Ids of locked examples: decided by an owner, changed since they were seen, having the tag."""

    decided: set[int]
    newer: set[int]
    tagged: set[int]

    @classmethod
    def of(cls, rows: Sequence[Example], wish: Wish) -> "_BatchFacts":
        # Tags change no decision, so it does not matter what was decided since.
        if wish.action in TAGS:
            tags = ExampleTag.objects.filter(example__in=rows, name=wish.tag)
            return cls(set(), set(), set(tags.values_list("example", flat=True)))
        decisions = OwnerDecision.objects.filter(example__in=rows)
        decided_ids = set(
            decisions.filter(withdrawn_at__isnull=True).values_list("example", flat=True)
        )
        since = wish.looked_at
        later = Q(created_at__gt=since) | Q(withdrawn_at__gt=since)
        newer = decisions.filter(later).values_list("example", flat=True) if since else ()
        return cls(decided_ids, set(newer), set())


def _explain_refusal(row: Example, wish: Wish, facts: _BatchFacts) -> tuple[str, str] | None:
    """Return a code and a sentence if the example does not allow the action; None if it does."""
    message_values = {"number": row.round.number}
    if row.retracted_at:
        return "withdrawn", _("It is withdrawn.")
    if row.round.state == Round.State.RELEASED:
        message = _("Round %(number)d is released. What was decided in it stays.")
        return "released", message % message_values
    if row.pk in facts.newer:
        return "changed", _("Somebody has decided it since you looked.")
    match wish.action:
        case Action.TAG if row.pk in facts.tagged:
            return "tagged", _("It has the tag already.")
        case Action.UNTAG if row.pk not in facts.tagged:
            return "untagged", _("It does not have the tag.")
        case Action.UNDECIDE if row.pk not in facts.decided:
            return "no_decision", _("No owner has decided it.")
        case Action.ACCEPT if _find_accepting(row) is None:
            return "unclaimed", _("Its author has not said what is right. Decide it by itself.")
        case Action.SEND_BACK:
            return _explain_uncorrectable(row)
    return None


def _explain_uncorrectable(row: Example) -> tuple[str, str] | None:
    """Return why the author cannot correct the example; None if they can."""
    if row.round.state not in (Round.State.OPEN, Round.State.PAUSED):
        message = _(
            "Round %(number)d is closed, so its author can mend nothing. Reject it instead."
        )
        return "closed", message % {"number": row.round.number}
    if row.annotator is None or row.annotator.user_id is None:
        return "no_author", _("Its author has no account here. Reject it instead.")
    return None


def _find_accepting(row: Example) -> Vote | None:
    config = row.round.task.config
    field = find_label_field(config)
    return find_accepting_vote(config, row.outcome, row.inputs.get(field) if field else None)


def _decide(rows: Sequence[Example], actor: User, wish: Wish) -> None:
    """Decide locked examples of one round by the owner's choice, or again by their votes."""
    before = OwnerDecision.objects.filter(example__in=rows, withdrawn_at__isnull=True)
    # Their examples are locked, so no other decision comes between.
    before.update(withdrawn_at=timezone.now())
    if wish.action in DECIDING_ACTIONS:
        OwnerDecision.objects.bulk_create(_decision(row, actor, wish) for row in rows)
    derive_all(rows)


def _decision(row: Example, actor: User, wish: Wish) -> OwnerDecision:
    choice = _find_accepting(row) if wish.action == Action.ACCEPT else None
    choice = choice or find_rejecting_vote(row.round.task.config, row)
    return OwnerDecision(
        example=row,
        owner=actor,
        label=choice.label or "",
        verdict=choice.verdict or "",
        reason=wish.reason,
        is_sent_back=wish.action == Action.SEND_BACK,
    )


def _tag(rows: Sequence[Example], wish: Wish) -> None:
    if wish.action == Action.TAG:
        tags = (ExampleTag(example=row, name=wish.tag) for row in rows)
        ExampleTag.objects.bulk_create(tags, ignore_conflicts=True)
    else:
        ExampleTag.objects.filter(example__in=rows, name=wish.tag).delete()


def undo(*, task: Task, actor: User, run: str) -> Done:
    """Undo the person's action with this run id, except for examples decided since.

    An earlier decision of an owner remains withdrawn: the votes decide again. Locks as `act_on`.
    Raises NothingToUndo.
    """
    entries = list(LogEntry.objects.filter(actor=actor, task=task.code, data__run=run))
    action = UNDO_ACTIONS.get(entries[0].action) if entries else None
    if action is None:
        raise NothingToUndo(_("There is nothing of yours to take back."))
    examples: list[int] = []
    for entry in entries:  # one entry for each batch of the run
        examples += entry.data["examples"]
    # What others decided after the run is left alone.
    looked_at = max(entry.created_at for entry in entries)
    wish = Wish(action, tag=entries[0].data.get("tag", ""), looked_at=looked_at)
    return act_on(task=task, examples=examples, actor=actor, wish=wish)

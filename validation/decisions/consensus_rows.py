"""The consensus row of each example: derived from its votes, under the example's lock."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime

from django.conf import settings
from django.db import connection
from django.db.models import F
from django.utils import timezone

from annotation.models import Example, TargetOutput
from core.data.prepared import PreparedRead, Slot
from core.data.prepared_insert import PreparedInsert
from core.data.sql import change_rows
from tasks.models import Round
from validation.consensus.claims import check_claim, find_label_field
from validation.consensus.consensus import Policy, decide, votes_still_needed
from validation.consensus.dawid_skene.posterior import Fitted
from validation.consensus.sampling import order_key
from validation.models import Consensus, Gold, OwnerDecision, QueueItem, RoundPolicy, Validation

# All columns but the example and its round, which never change.
DERIVED = (
    "state",
    "label",
    "verdict",
    "votes",
    "still_needed",
    "is_verified",
    "is_validated_error",
    "is_sent_back",
    "decided_by",
    "decided_at",
)
# One statement for a first vote and for a later one.
STORED = PreparedInsert(Consensus, unique=["example"], update=DERIVED)
LOCKED = PreparedRead(
    lambda: Example.objects.select_related("round__round_policy", "consensus").filter(
        pk=Slot("example")
    )
)

# In SQL, as each vote needs it (core/data/sql.py).
STILL_NEEDED = """
UPDATE validation_queueitem
SET free = free + %(needed)s - still_needed + %(freed)s, still_needed = %(needed)s
WHERE example_id = %(example)s
"""


def round_policy_of(round: Round) -> RoundPolicy:
    """Return the round's policy row; create it with the task's policy if missing.

    Takes no lock.
    """
    policy_row = RoundPolicy.objects.filter(round=round).first()
    if policy_row is None:
        policy = Policy.from_votes(round.task.config.validation.votes)
        # Two requests may find no row; one inserts it, and both use that one.
        policy_row, _ = RoundPolicy.objects.get_or_create(
            round=round, defaults={"policy": asdict(policy)}
        )
    return policy_row


def policy_of(round: Round) -> Policy:
    """Return the policy that decides in the round now.

    This is the round's own, or else that of the task's configuration.
    """
    policy_row = RoundPolicy.objects.filter(round=round).first()
    if policy_row is None:
        return Policy.from_votes(round.task.config.validation.votes)
    return Policy(**policy_row.policy)


def is_decided_since(example: Example, moment: datetime) -> bool:
    """Return whether an example is decided, and was decided at or after this moment."""
    decided = Consensus.objects.filter(example=example, state=Consensus.State.DECIDED)
    return decided.filter(decided_at__gte=moment).exists()


def lock_example(example: Example) -> Example:
    """Lock the example until the transaction ends, and return it as it is then.

    Rows that refer to it may still be inserted. Its consensus and its round's policy are read in a
    statement after that of the lock, because others may have changed them during the wait.
    """
    # No key: rows that point at the example, such as comments, may still be inserted.
    if connection.features.has_select_for_update:  # SQLite has locked the whole database
        Example.objects.select_for_update(no_key=True).values_list("pk").get(pk=example.pk)
    locked = LOCKED.get(example=example.pk)
    locked.round.task = example.round.task
    return locked


def derive_consensus(example: Example, votes: Sequence[Validation], freed_places: int = 0) -> None:
    """Store the decision of all votes on one locked example.

    Uses its consensus and its round's policy as they were read under the lock. freed_places:
    leased places to free.
    """
    old_consensus = getattr(example, "consensus", None)
    by_owner = None
    # Few examples have a decision of an owner, so mostly no query.
    if old_consensus and old_consensus.decided_by == Consensus.DecidedBy.OWNER:
        by_owner = example.owner_decisions.filter(withdrawn_at__isnull=True).first()
    # Read under the example's lock, so a policy that was changed before it is the one that counts.
    policy_row = getattr(example.round, "round_policy", None) or round_policy_of(example.round)
    model_label = _model_labels([example]).get(example.pk)
    new_consensus = build_consensus(
        example,
        votes,
        Policy(**policy_row.policy),
        by_owner,
        old_consensus,
        model_label,
        policy_row.fitted,
    )
    if new_consensus.votes or new_consensus.decided_by:
        STORED.insert(new_consensus)
    else:  # nobody judges or decides it any more
        Consensus.objects.filter(pk=example.pk).delete()
    values = {"example": example.pk, "needed": new_consensus.still_needed, "freed": freed_places}
    # Last, as the item of the queue comes last in the order of locks.
    change_rows(STILL_NEEDED, **values)


def build_consensus(
    example: Example,
    votes: Iterable[Validation],
    policy: Policy,
    by_owner: OwnerDecision | None = None,
    old_consensus: Consensus | None = None,
    model_label: str | None = None,
    fitted_model: Fitted | None = None,
) -> Consensus:
    """Return an example's consensus as it should be stored. Reads and writes no rows."""
    votes = list(votes)
    cast = [vote.vote for vote in votes]
    owner = by_owner.vote if by_owner else None
    labels = ((vote.validator_id, vote.label) for vote in votes)
    # A model stays stored after a change to another rule, which does not use it.
    posterior = (
        fitted_model.posterior(labels) if fitted_model and policy.rule == "dawid-skene" else None
    )
    decision = decide(cast, policy, owner=owner, posterior=posterior)
    config = example.round.task.config
    field = find_label_field(config)
    author_label = example.inputs.get(field) if field else None
    is_verified, is_error = check_claim(
        config, example.outcome, decision, author_label, model_label
    )
    new_consensus = Consensus(
        example=example,
        round_id=example.round_id,
        state=decision.state,
        label=decision.label or "",
        verdict=decision.verdict or "",
        votes=len(cast),
        still_needed=votes_still_needed(cast, policy, owner=owner, posterior=posterior),
        is_verified=is_verified,
        is_validated_error=is_error,
        is_sent_back=bool(by_owner and by_owner.is_sent_back),
    )
    if decision.winner:
        by = Consensus.DecidedBy
        new_consensus.decided_by = by.OWNER if decision.by_owner else by.VOTES
        new_consensus.decided_at = _decided_at(new_consensus, old_consensus)
    return new_consensus


def _model_labels(examples: Sequence[Example]) -> dict[int, str]:
    """Return the first target's answer by example id, for examples with an unknown outcome."""
    unknown = {e.pk: e for e in examples if e.outcome == Example.Outcome.UNKNOWN}
    # Only imports have such outcomes, so mostly there is no query.
    if not unknown:
        return {}
    field = examples[0].round.task.config.answer_field
    # Backwards: of several answers the last one read stays, which is the first target's.
    outputs = TargetOutput.objects.filter(example__in=unknown).order_by("-position")
    return {output.example_id: str(output.output.get(field)) for output in outputs}


def _decided_at(new_consensus: Consensus, old_consensus: Consensus | None) -> datetime:
    """Return when this decision was first made; a vote that changes nothing keeps the time."""
    # Undoing a vote asks when it was decided (`is_decided_since`).
    same = ("label", "verdict", "decided_by")
    if (
        old_consensus
        and old_consensus.decided_at
        and all(getattr(new_consensus, n) == getattr(old_consensus, n) for n in same)
    ):
        return old_consensus.decided_at
    return timezone.now()


def _store(rows: Sequence[Consensus]) -> None:
    """Write consensus rows; examples without votes and decisions get none."""
    decided_rows = [row for row in rows if row.votes or row.decided_by]
    silent = [row.pk for row in rows if not (row.votes or row.decided_by)]
    if silent:
        Consensus.objects.filter(pk__in=silent).delete()
    Consensus.objects.bulk_create(
        decided_rows, update_conflicts=True, unique_fields=["example"], update_fields=DERIVED
    )


def derive_all(examples: Sequence[Example]) -> int:
    """Store the decisions of a round's locked examples; return how many changed."""
    policy_row = round_policy_of(examples[0].round)
    policy, fitted_model = Policy(**policy_row.policy), policy_row.fitted
    old_rows = Consensus.objects.in_bulk([example.pk for example in examples])
    by_owner = {
        decision.example_id: decision
        for decision in OwnerDecision.objects.filter(
            example__in=examples, withdrawn_at__isnull=True
        )
    }
    votes: dict[int, list[Validation]] = {}
    for vote in Validation.objects.filter(example__in=examples):
        votes.setdefault(vote.example_id, []).append(vote)
    model_labels = _model_labels(examples)
    rows = [
        build_consensus(
            e,
            votes.get(e.pk, []),
            policy,
            by_owner.get(e.pk),
            old_rows.get(e.pk),
            model_labels.get(e.pk),
            fitted_model,
        )
        for e in examples
    ]
    _requeue(examples, [row for row in rows if row.votes and row.still_needed])
    _store(rows)
    # An update for each number of votes, which are few, and not for each example.
    for votes_needed in {row.still_needed for row in rows}:
        item_ids = [row.pk for row in rows if row.still_needed == votes_needed]
        items = QueueItem.objects.filter(pk__in=item_ids).exclude(still_needed=votes_needed)
        # Places that are leased at the moment stay leased: only the difference is free.
        items.update(free=F("free") + votes_needed - F("still_needed"), still_needed=votes_needed)
    names = ("state", "label", "verdict", "is_verified", "is_validated_error")
    return sum(
        # A first decision is no change of one.
        row.pk in old_rows and any(getattr(row, n) != getattr(old_rows[row.pk], n) for n in names)
        for row in rows
    )


def _requeue(examples: Sequence[Example], undecided_rows: Sequence[Consensus]) -> None:
    """Queue undecided examples that were not queued because their import had decided them."""
    by_pk = {example.pk: example for example in examples}
    # Gold is never queued: its answer is known.
    gold = set(Gold.objects.filter(example__in=by_pk).values_list("pk", flat=True))
    QueueItem.objects.bulk_create(
        [
            QueueItem(
                example_id=row.pk,
                round_id=row.round_id,
                author_id=by_pk[row.pk].annotator_id,
                still_needed=row.still_needed,
                free=row.still_needed,
                key=order_key(by_pk[row.pk].uuid, settings.SECRET_KEY),
            )
            for row in undecided_rows
            if by_pk[row.pk].retracted_at is None and row.pk not in gold
        ],
        # Most of them are in the queue already.
        ignore_conflicts=True,
    )

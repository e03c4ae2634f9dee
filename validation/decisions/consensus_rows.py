"""The consensus row of each example: derived from its votes, under the example's lock."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime

from django.conf import settings
from django.db import connection
from django.db.models import F, prefetch_related_objects
from django.utils import timezone

from annotation.models import Example, TargetOutput
from core.data.prepared import PreparedRead, Slot
from core.data.prepared_insert import PreparedInsert
from core.data.sql import change_rows
from tasks.config.judging_checks import has_comparable_labels
from tasks.models import Round
from tasks.targets.sample_judges import find_sample_judge
from validation.consensus.claims import assess_claim, find_label_field
from validation.consensus.consensus import Policy
from validation.consensus.criteria import Ballot, decide_example, list_judged_criteria
from validation.consensus.dawid_skene.posterior import FittedModel
from validation.consensus.sampling import compute_order_key
from validation.consensus.steps import count_needed_for_steps, list_steps, read_step_labels
from validation.consensus.vote_draws import DEFAULT_PROMPT, DrawRule
from validation.models import Consensus, Gold, OwnerDecision, QueueItem, RoundPolicy, Validation

# All columns except the example and its round, which never change.
DERIVED_FIELDS = (
    "state",
    "label",
    "verdict",
    "votes",
    "still_needed",
    "is_verified",
    "is_validated_error",
    "is_sent_back",
    "judgements",
    "score",
    "decided_by",
    "decided_at",
)
# One statement for a first vote and for a later one.
STORED_CONSENSUS = PreparedInsert(
    Consensus, unique_fields=["example"], update_fields=DERIVED_FIELDS
)
LOCKED_CONSENSUS = PreparedRead(
    lambda: Example.objects.select_related("round__round_policy", "consensus").filter(
        pk=Slot("example")
    )
)

# In SQL, because each vote runs it (core/data/sql.py).
STILL_NEEDED_SQL = """
UPDATE validation_queueitem
SET free = free + %(needed)s - still_needed + %(freed)s, still_needed = %(needed)s
WHERE example_id = %(example)s
"""


def get_round_policy(round: Round) -> RoundPolicy:
    """Return the round's policy row; create it with the task's policy and sample if missing.

    Takes no lock.
    """
    policy_row = RoundPolicy.objects.filter(round=round).first()
    if policy_row is None:
        policy = Policy.from_votes(round.task.config.validation.votes)
        rule = build_configured_draw(round)
        # Two requests may find no row; one of them inserts it, and both use it.
        policy_row, _ = RoundPolicy.objects.get_or_create(
            round=round,
            defaults={"policy": asdict(policy), "draw": asdict(rule) if rule else None},
        )
    return policy_row


def build_configured_draw(round: Round) -> DrawRule | None:
    """Return the rule of the sample in the task's configuration; None if people judge all.

    None also if the round can't have the judge model, which is refused when a round is opened. One
    query if the configuration has a sample.
    """
    sample = round.task.config.validation.sample
    judge = find_sample_judge(round)
    if sample is None or judge is None:
        return None
    prompt = None
    if sample.by_instruction or not has_comparable_labels(round.task.config):
        # Stored as text, so that a later version of the site changes no judge.
        prompt = sample.prompt or DEFAULT_PROMPT
    return DrawRule(judge.pk, sample.min_chance, prompt)


def get_policy(round: Round) -> Policy:
    """Return the policy that decides in the round now.

    This is the round's own, or else the one in the task's configuration.
    """
    policy_row = RoundPolicy.objects.filter(round=round).first()
    if policy_row is None:
        return Policy.from_votes(round.task.config.validation.votes)
    return Policy(**policy_row.policy)


def is_decided_since(example: Example, moment: datetime) -> bool:
    """Return whether an example is decided, and was decided at or after this moment."""
    decided_rows = Consensus.objects.filter(example=example, state=Consensus.State.DECIDED)
    return decided_rows.filter(decided_at__gte=moment).exists()


def lock_example(example: Example) -> Example:
    """Lock the example until the transaction ends, and return it as read under the lock.

    Rows that refer to it may still be inserted. Its consensus and its round's policy are read after
    the lock, because others may have changed them during the wait.
    """
    # Without the key, so that rows that refer to the example can be inserted.
    if connection.features.has_select_for_update:  # SQLite has already locked the whole database
        Example.objects.select_for_update(no_key=True).values_list("pk").get(pk=example.pk)
    locked_example = LOCKED_CONSENSUS.get(example=example.pk)
    locked_example.round.task = example.round.task
    return locked_example


def derive_consensus(example: Example, votes: Sequence[Validation], freed_places: int = 0) -> None:
    """Store the decision of all votes on one locked example.

    Uses its consensus and its round's policy as they were read under the lock. freed_places: the
    number of leased places to free.
    """
    old_consensus = getattr(example, "consensus", None)
    by_owner = None
    # Few examples have a decision by an owner, so this query is rare.
    if old_consensus and old_consensus.decided_by == Consensus.DecidedBy.OWNER:
        by_owner = example.owner_decisions.filter(withdrawn_at__isnull=True).first()
    # Read under the example's lock, so that it is the latest policy.
    policy_row = getattr(example.round, "round_policy", None) or get_round_policy(example.round)
    model_label = _find_model_labels([example]).get(example.pk)
    new_consensus = build_consensus(
        example,
        votes,
        Policy(**policy_row.policy),
        by_owner,
        old_consensus,
        model_label,
        policy_row.fitted_model,
    )
    if new_consensus.votes or new_consensus.decided_by:
        STORED_CONSENSUS.insert(new_consensus)
    else:  # it is no longer judged or decided
        Consensus.objects.filter(pk=example.pk).delete()
    values = {"example": example.pk, "needed": new_consensus.still_needed, "freed": freed_places}
    # Last, because queue items come last in the order of locks.
    change_rows(STILL_NEEDED_SQL, **values)


def build_consensus(
    example: Example,
    votes: Iterable[Validation],
    policy: Policy,
    by_owner: OwnerDecision | None = None,
    old_consensus: Consensus | None = None,
    model_label: str | None = None,
    fitted_model: FittedModel | None = None,
) -> Consensus:
    """Return an example's consensus as it should be stored. Reads and writes no rows."""
    votes = list(votes)
    owner = by_owner.vote if by_owner else None
    # By people's votes alone: no program may make the posterior sure.
    labels = ((vote.validator_id, vote.label) for vote in votes if not vote.by_program)
    # The model is still stored after a change to another rule, which does not use it.
    posterior = (
        fitted_model.compute_posterior(labels)
        if fitted_model and policy.rule == "dawid-skene"
        else None
    )
    config = example.round.task.config
    criteria = list_judged_criteria(config, example.outcome, example.inputs)
    ballots = (Ballot(vote.vote, vote.judgements) for vote in votes)
    decision, still_needed, judgements, score = decide_example(
        config, criteria, ballots, policy, owner=owner, posterior=posterior
    )
    field = find_label_field(config)
    author_label = example.inputs.get(field) if field else None
    is_verified, is_error = assess_claim(
        config, example.outcome, decision, author_label, model_label
    )
    # The whole may be decided before each of its steps is.
    if config.validation.steps:
        steps = list_steps(config.validation.steps, example.context.fields)
        step_labels = [read_step_labels(vote.metadata) for vote in votes]
        needed_for_steps = count_needed_for_steps(step_labels, decision, policy, steps)
        still_needed = max(still_needed, needed_for_steps)
    new_consensus = Consensus(
        example=example,
        round_id=example.round_id,
        state=decision.state,
        label=decision.label or "",
        verdict=decision.verdict or "",
        votes=len(votes),
        still_needed=still_needed,
        is_verified=is_verified,
        is_validated_error=is_error,
        is_sent_back=bool(by_owner and by_owner.is_sent_back),
        judgements=list(judgements) or None,
        score=score,
    )
    if decision.winner:
        decided_by = Consensus.DecidedBy
        new_consensus.decided_by = decided_by.OWNER if decision.is_by_owner else decided_by.VOTES
        new_consensus.decided_at = _find_decision_time(new_consensus, old_consensus)
    return new_consensus


def _find_model_labels(examples: Sequence[Example]) -> dict[int, str]:
    """Return the first target's answer by example id, for examples with an unknown outcome."""
    unlabelled_examples = {
        example.pk: example for example in examples if example.outcome == Example.Outcome.UNKNOWN
    }
    # Only imports have such outcomes, so this query is rare.
    if not unlabelled_examples:
        return {}
    field = examples[0].round.task.config.answer_field
    # In reverse: the last answer read replaces the others, and is the first target's.
    outputs = TargetOutput.objects.filter(example__in=unlabelled_examples).order_by("-position")
    return {output.example_id: str(output.output.get(field)) for output in outputs}


def _find_decision_time(new_consensus: Consensus, old_consensus: Consensus | None) -> datetime:
    """Return when this decision was first made; a vote that changes nothing keeps the time."""
    # Undoing a vote needs the time of the decision (`is_decided_since`).
    compared_fields = ("label", "verdict", "decided_by")
    if (
        old_consensus
        and old_consensus.decided_at
        and all(
            getattr(new_consensus, name) == getattr(old_consensus, name) for name in compared_fields
        )
    ):
        return old_consensus.decided_at
    return timezone.now()


def _store_consensus_rows(rows: Sequence[Consensus]) -> None:
    """Write consensus rows; examples without votes and decisions get none."""
    decided_rows = [row for row in rows if row.votes or row.decided_by]
    empty_row_ids = [row.pk for row in rows if not (row.votes or row.decided_by)]
    if empty_row_ids:
        Consensus.objects.filter(pk__in=empty_row_ids).delete()
    Consensus.objects.bulk_create(
        decided_rows, update_conflicts=True, unique_fields=["example"], update_fields=DERIVED_FIELDS
    )


def derive_consensus_of_all(examples: Sequence[Example]) -> int:
    """Store the decisions of a round's locked examples; return how many changed.

    A first decision does not count as a change.
    """
    policy_row = get_round_policy(examples[0].round)
    policy, fitted_model = Policy(**policy_row.policy), policy_row.fitted_model
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
    model_labels = _find_model_labels(examples)
    if examples[0].round.task.config.validation.steps:
        prefetch_related_objects(examples, "context")
    rows = [
        build_consensus(
            example,
            votes.get(example.pk, []),
            policy,
            by_owner.get(example.pk),
            old_rows.get(example.pk),
            model_labels.get(example.pk),
            fitted_model,
        )
        for example in examples
    ]
    _requeue_examples(examples, [row for row in rows if row.votes and row.still_needed])
    _store_consensus_rows(rows)
    # One update for each number of votes, of which there are few, not for each example.
    for votes_needed in {row.still_needed for row in rows}:
        item_ids = [row.pk for row in rows if row.still_needed == votes_needed]
        items = QueueItem.objects.filter(pk__in=item_ids).exclude(still_needed=votes_needed)
        # Places that are currently leased stay leased; only the difference is free.
        items.update(free=F("free") + votes_needed - F("still_needed"), still_needed=votes_needed)
    names = ("state", "label", "verdict", "is_verified", "is_validated_error")
    return sum(
        # A first decision does not count as a change.
        row.pk in old_rows
        and any(getattr(row, name) != getattr(old_rows[row.pk], name) for name in names)
        for row in rows
    )


def _requeue_examples(examples: Sequence[Example], undecided_rows: Sequence[Consensus]) -> None:
    """Queue undecided examples that were not queued because their import had decided them."""
    rows_by_id = {example.pk: example for example in examples}
    # Gold items are never queued, because their answers are known.
    gold_ids = set(Gold.objects.filter(example__in=rows_by_id).values_list("pk", flat=True))
    QueueItem.objects.bulk_create(
        [
            QueueItem(
                example_id=row.pk,
                round_id=row.round_id,
                author_id=rows_by_id[row.pk].annotator_id,
                still_needed=row.still_needed,
                free=row.still_needed,
                key=compute_order_key(rows_by_id[row.pk].uuid, settings.SECRET_KEY),
            )
            for row in undecided_rows
            if rows_by_id[row.pk].retracted_at is None and row.pk not in gold_ids
        ],
        # Most of them are already in the queue.
        ignore_conflicts=True,
    )

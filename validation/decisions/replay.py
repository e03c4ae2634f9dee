"""A stream of a round's examples as a policy would decide them. It is never stored."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext_noop

from annotation.models import Example, TargetOutput
from tasks.models import Round
from validation.consensus.claims import assess_claim
from validation.consensus.consensus import Decision, Policy, Vote
from validation.consensus.criteria import Ballot, decide_example, list_judged_criteria
from validation.consensus.dawid_skene.posterior import FittedModel
from validation.decisions.counted import build_weight_expression
from validation.decisions.second_opinion import fit_model
from validation.models import Consensus, OwnerDecision, Validation
from validation.rates.round_counts import Cell, Part

UNDECIDED = gettext_noop("undecided")


class ExampleStatus(NamedTuple):
    """The decision on an example, as stored or under a policy."""

    state: str = Consensus.State.UNDECIDED
    label: str = ""
    verdict: str = ""
    is_verified: bool = False
    is_validated_error: bool = False

    @property
    def words(self) -> str:
        """Return the status in words, without the label."""
        if self.state == Consensus.State.NO_CONSENSUS:
            return gettext_noop("no consensus")
        if self.state != Consensus.State.DECIDED:
            return UNDECIDED
        if self.is_verified:
            return gettext_noop("confirmed")
        return gettext_noop("not confirmed")


@dataclass(frozen=True, slots=True)
class ReplayedExample:
    """An example of a round, with the decision of its votes; undecided without votes."""

    example_id: int
    annotator_id: int | None
    by_program: bool
    outcome: str
    votes: int
    decision: Decision
    status: ExampleStatus
    weight: float | None
    """Its weight in the round's rates; None if its context was not drawn."""

    def add_to(self, part: Part, status: ExampleStatus) -> None:
        """Count the example in a part of its round, with this status."""
        cell = Cell(
            self.annotator_id,
            self.outcome,
            self.votes > 0,
            status.state == Consensus.State.DECIDED,
            status.label or status.verdict,
            status.is_verified,
            status.is_validated_error,
        )
        part.cells[cell] += 1
        if self.weight is not None:
            part.excess_weights[cell] = part.excess_weights.get(cell, 0) + self.weight - 1


class CastVote(NamedTuple):
    """A vote with its validator, and whether a program gave it."""

    validator: int | None
    by_program: bool
    ballot: Ballot


def get_text(value: Any) -> str | None:
    """Return an answer as plain text, to be compared with labels; None if it has no text."""
    if isinstance(value, Mapping):
        value = value.get("text")
    return value if isinstance(value, str) else None


def replay_policy(
    round: Round, policy: Policy, model: FittedModel | None = None
) -> Iterator[ReplayedExample]:
    """Yield each example of the round that is not retracted, by id. An owner's decision wins.

    model: the fitted model for dawid-skene. If None, a model is fitted to the votes of the round,
    which are then all in memory at once.
    """
    if policy.rule == "dawid-skene" and model is None:
        model = fit_model(round)
    owners = {
        row.example_id: row.vote
        for row in OwnerDecision.objects.filter(
            example__round=round, withdrawn_at__isnull=True
        ).iterator()
    }
    config = round.task.config
    field = config.answer_field
    # Votes and examples are both sorted by the example's id, so one pass joins them.
    votes = _iterate_votes(round)
    next_votes = next(votes, None)
    for example in _iterate_examples(round):
        example_id, annotator, by_program, outcome, inputs, weight, output = example
        cast_votes: list[CastVote] = []
        if next_votes and next_votes[0] == example_id:
            cast_votes, next_votes = next_votes[1], next(votes, None)
        labels = (
            (cast_vote.validator, cast_vote.ballot.vote.label or "")
            for cast_vote in cast_votes
            if not cast_vote.by_program
        )
        posterior = model.compute_posterior(labels) if model else None
        decision = decide_example(
            config,
            list_judged_criteria(config, outcome, inputs),
            (cast_vote.ballot for cast_vote in cast_votes),
            policy,
            owner=owners.get(example_id),
            posterior=posterior,
        ).decision
        author_label = get_text(inputs.get(field))
        # Otherwise the stored outcome says whether the model was wrong.
        model_label = get_text((output or {}).get(field)) if outcome == "unknown" else None
        claim = assess_claim(config, outcome, decision, author_label, model_label)
        status = ExampleStatus(decision.state, decision.label or "", decision.verdict or "", *claim)
        yield ReplayedExample(
            example_id, annotator, by_program, outcome, len(cast_votes), decision, status, weight
        )


def _iterate_examples(round: Round) -> Iterator[tuple[Any, ...]]:
    # The first target's answer, as when the consensus is derived.
    outputs = TargetOutput.objects.filter(example=OuterRef("pk")).order_by("position")
    first_output = Subquery(outputs.values("output")[:1])
    return (
        Example.objects.filter(round=round, retracted_at__isnull=True)
        .order_by("pk")
        .annotate(weight=build_weight_expression())
        .values_list(
            "pk", "annotator_id", "by_program", "outcome", "inputs", "weight", first_output
        )
        # Streamed, because a round may have a million examples.
        .iterator(chunk_size=2000)
    )


def _iterate_votes(round: Round) -> Iterator[tuple[int, list[CastVote]]]:
    """Yield each example's id with its votes and their validators, ordered by id."""
    rows = (
        Validation.objects.filter(example__round=round, example__retracted_at__isnull=True)
        .order_by("example_id")
        .values_list("example_id", "validator_id", "by_program", "judgements", "label", "verdict")
        .iterator(chunk_size=2000)
    )
    build_vote = lru_cache(Vote)  # the same few choices again and again
    for example_id, group in groupby(rows, itemgetter(0)):
        yield (
            example_id,
            [
                CastVote(
                    validator,
                    by_program,
                    Ballot(build_vote(*(word or None for word in choice)), judgements),
                )
                for _, validator, by_program, judgements, *choice in group
            ],
        )

"""All examples of a round as a policy decides them, as a stream; nothing is stored."""

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
from validation.consensus.claims import check_claim
from validation.consensus.consensus import Decision, Policy, Vote, decide
from validation.consensus.dawid_skene.posterior import Fitted
from validation.decisions.second_opinion import fit_model
from validation.models import Consensus, OwnerDecision, Validation
from validation.rates.round_counts import Cell

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
        return gettext_noop("decided, not confirmed")


@dataclass(frozen=True, slots=True)
class ReplayedExample:
    """An example of a round and the decision of its votes; undecided without votes."""

    example_id: int
    annotator_id: int | None
    by_program: bool
    outcome: str
    votes: int
    decision: Decision
    status: ExampleStatus

    def cell(self, status: ExampleStatus) -> Cell:
        """Return the cell that counts the example with this status."""
        return Cell(
            self.annotator_id,
            self.outcome,
            self.votes > 0,
            status.state == Consensus.State.DECIDED,
            status.label or status.verdict,
            status.is_verified,
            status.is_validated_error,
        )


def text_of(value: Any) -> str | None:
    """Return an answer as the plain text by which labels are compared; of a span, its text."""
    if isinstance(value, Mapping):
        value = value.get("text")
    return value if isinstance(value, str) else None


def replay(round: Round, policy: Policy, model: Fitted | None = None) -> Iterator[ReplayedExample]:
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
    # Votes and examples both come by the example's id, so one pass joins them.
    votes = _votes(round)
    next_votes = next(votes, None)
    for pk, annotator, by_program, outcome, inputs, output in _examples(round):
        cast: list[tuple[int | None, Vote]] = []
        if next_votes and next_votes[0] == pk:
            cast, next_votes = next_votes[1], next(votes, None)
        labels = ((who, vote.label or "") for who, vote in cast)
        posterior = model.posterior(labels) if model else None
        votes_cast = (vote for _, vote in cast)
        decision = decide(votes_cast, policy, owner=owners.get(pk), posterior=posterior)
        author_label = text_of(inputs.get(field))
        # Elsewhere the stored outcome says whether the model was wrong.
        model_label = text_of((output or {}).get(field)) if outcome == "unknown" else None
        claim = check_claim(config, outcome, decision, author_label, model_label)
        status = ExampleStatus(decision.state, decision.label or "", decision.verdict or "", *claim)
        yield ReplayedExample(pk, annotator, by_program, outcome, len(cast), decision, status)


def _examples(round: Round) -> Iterator[tuple[int, int | None, bool, str, Any, Any]]:
    # The first target's answer, as when the consensus is derived.
    outputs = TargetOutput.objects.filter(example=OuterRef("pk")).order_by("position")
    first_output = Subquery(outputs.values("output")[:1])
    return (
        Example.objects.filter(round=round, retracted_at__isnull=True)
        .order_by("pk")
        .values_list("pk", "annotator_id", "by_program", "outcome", "inputs", first_output)
        # Streamed, as a round may have a million examples.
        .iterator(chunk_size=2000)
    )


def _votes(round: Round) -> Iterator[tuple[int, list[tuple[int | None, Vote]]]]:
    """Yield each example's id with its votes and their validators, ordered by id."""
    rows = (
        Validation.objects.filter(example__round=round, example__retracted_at__isnull=True)
        .order_by("example_id")
        .values_list("example_id", "validator_id", "label", "verdict")
        .iterator(chunk_size=2000)
    )
    vote_of = lru_cache(Vote)  # the same few choices again and again
    for pk, group in groupby(rows, itemgetter(0)):
        yield pk, [(who, vote_of(*(word or None for word in choice))) for _, who, *choice in group]

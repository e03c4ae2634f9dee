"""The answers about the steps of conversations: counted by round, and decided by example."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db.models import JSONField, QuerySet
from django.db.models.fields.json import KeyTransform

from annotation.models import Example
from tasks.config.judging import STEPS_KEY
from tasks.config.schema import TaskConfig
from tasks.formats.traces import SPANS_KEY
from tasks.models import Round
from validation.consensus.consensus import Decision, Policy
from validation.consensus.steps import StepLabels, decide_steps, list_steps
from validation.models import RoundPolicy, Validation
from validation.rates.step_counts import StepCounts


def count_steps(rounds: Sequence[Round]) -> dict[int, StepCounts]:
    """Return the counts of each round's steps by the round's id. Two queries.

    Votes of programs, and examples that programs wrote or that were retracted, are left out.
    """
    # Rounds whose votes were not counted yet have no policy of their own.
    default_policy = Policy.from_votes(rounds[0].task.config.validation.votes)
    policies = {
        row.pk: Policy(**row.policy) for row in RoundPolicy.objects.filter(round__in=rounds)
    }
    counts = {round.pk: StepCounts() for round in rounds}
    votes = Validation.objects.filter(
        example__round__in=rounds,
        example__retracted_at=None,
        example__by_program=False,
        by_program=False,
    )
    for round_id, _, step_votes in _group_by_example(votes):
        decisions = decide_steps(step_votes, policies.get(round_id, default_policy))
        counts[round_id].add_example(
            (
                {str(vote.label): count for vote, count in decision.counts.items()},
                decision.winner is not None,
            )
            for decision in decisions.values()
        )
    return counts


def list_step_votes(example_ids: Iterable[int]) -> dict[int, list[StepLabels]]:
    """Return the answers about the steps of these examples, by example. One query."""
    votes = Validation.objects.filter(example__in=list(example_ids))
    return {example_id: step_votes for _, example_id, step_votes in _group_by_example(votes)}


def describe_steps(
    config: TaskConfig, example: Example, votes: Sequence[StepLabels], policy: Policy
) -> dict[str, Any]:
    """Return what the votes decide about each step of an example, with the ids of an import."""
    spans = example.metadata.get(SPANS_KEY)
    decisions = decide_steps(votes, policy)
    described = []
    # Each step, also one that nobody has judged.
    for step in list_steps(config.validation.steps, example.context.fields):
        decision = decisions.get(step.key, Decision("undecided"))
        has_span = isinstance(spans, list) and len(spans) >= int(step.key)
        described.append(
            {
                "turn": int(step.key),
                "role": step.role,
                "span": str(spans[int(step.key) - 1]) if has_span else "",
                "state": decision.state,
                "label": decision.label or "",
                "votes": {str(vote.label): count for vote, count in decision.counts.items()},
            }
        )
    return {"example": example.uuid, "uid": example.uid or "", "steps": described}


def _group_by_example(
    votes: QuerySet[Validation],
) -> Iterator[tuple[int, int, list[StepLabels]]]:
    """Yield the round, the example and the answers about its steps, of examples with any."""
    # In the database, as votes have other answers and may be many.
    rows = votes.filter(metadata__has_key=STEPS_KEY).order_by("example_id", "pk")
    values: Any = rows.values_list(
        "example__round_id",
        "example_id",
        KeyTransform(STEPS_KEY, "metadata", output_field=JSONField()),
    )
    for (round_id, example_id), group in groupby(values.iterator(), itemgetter(0, 1)):
        yield round_id, example_id, [labels for *_, labels in group if isinstance(labels, Mapping)]

"""Judging the steps of a conversation: which there are, and what the votes decide. Pure.

A step is a turn of the assistant or of a tool. Its key is the number of the turn, from 1, as text.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tasks.config.judging import STEPS_KEY, Steps
from tasks.config.judging_checks import list_step_labels
from tasks.config.schema import TaskConfig
from validation.consensus.consensus import (
    Decision,
    Policy,
    Vote,
    count_votes_still_needed,
    decide_by_votes,
)

UNJUDGED_VERDICTS = ("flagged", "cannot_tell")
"""Votes with these verdicts have no answers about steps."""

StepLabels = Mapping[str, str]


class Step(NamedTuple):
    """A step of a conversation that people judge. key: the number of its turn."""

    key: str
    role: str


def list_steps(steps: Steps | None, context: Mapping[str, Any]) -> list[Step]:
    """Return the steps of an example that people judge; none if the task doesn't ask for them."""
    # An import may leave the conversation out.
    turns = context.get(steps.field) if steps else None
    if steps is None or not isinstance(turns, list):
        return []
    return [
        Step(str(number), turn["role"])
        for number, turn in enumerate(turns, 1)
        if isinstance(turn, Mapping) and turn.get("role") in steps.roles
    ]


def read_step_labels(metadata: Mapping[str, Any]) -> StepLabels:
    """Return a vote's answers about steps; empty if it has none."""
    labels = metadata.get(STEPS_KEY)
    return labels if isinstance(labels, Mapping) else {}


def count_step_votes(votes: Iterable[StepLabels]) -> dict[str, Counter[Vote]]:
    """Return the number of votes for each label by step."""
    counts: dict[str, Counter[Vote]] = {}
    for labels in votes:
        for key, label in labels.items():
            counts.setdefault(key, Counter())[Vote(label=label)] += 1
    return counts


def build_step_policy(policy: Policy) -> Policy:
    """Return the policy by which each step is decided: that of the round.

    Dawid and Skene's model is fitted to whole examples, so with it equal votes decide.
    """
    return replace(policy, rule="n-equal") if policy.rule == "dawid-skene" else policy


def decide_steps(votes: Iterable[StepLabels], policy: Policy) -> dict[str, Decision]:
    """Decide each step that has votes, by the round's policy."""
    # Steps without votes are undecided, so nobody asks about them here.
    step_policy = build_step_policy(policy)
    return {
        key: decide_by_votes(counts, step_policy) for key, counts in count_step_votes(votes).items()
    }


def count_needed_for_steps(
    votes: Sequence[StepLabels], decision: Decision, policy: Policy, steps: Sequence[Step]
) -> int:
    """Return the minimum number of further votes that could decide all steps.

    decision: the decision on the whole. An example that is flagged, or that nobody can judge, needs
    no votes on its steps, nor does one that an owner has decided.
    """
    if decision.is_by_owner or decision.verdict in UNJUDGED_VERDICTS:
        return 0
    counts, step_policy = count_step_votes(votes), build_step_policy(policy)
    # Equal counts need equally many, and most steps have one of a few.
    patterns = {tuple(sorted(counts.get(step.key, Counter()).values())) for step in steps}
    return max(
        (_count_needed(pattern, step_policy) for pattern in patterns),
        default=0,
    )


def _count_needed(pattern: Sequence[int], policy: Policy) -> int:
    """Return how many votes a step needs whose labels have these numbers of votes."""
    counts = {Vote(label=str(index)): count for index, count in enumerate(pattern)}
    return count_votes_still_needed(counts, policy)


def find_step_error(config: TaskConfig, steps: Sequence[Step], vote: Vote, labels: Any) -> str:
    """Return what is wrong with a vote's answers about steps, for programs; "" if nothing is."""
    # Such a vote says that there is nothing to judge in the whole.
    if vote.verdict in UNJUDGED_VERDICTS or not steps:
        return "This vote has no answers about steps. Leave them out." if labels else ""
    if not isinstance(labels, Mapping):
        return "Give a label for each step."
    # What is missing first: programs send all steps at once.
    missing = [step.key for step in steps if step.key not in labels]
    if missing:
        return f"Give a label for each step. These are missing: {', '.join(missing)}."
    unknown = [key for key in labels if key not in {step.key for step in steps}]
    if unknown:
        return f"These are no steps of the example: {', '.join(map(str, unknown))}."
    choices = [label.value for label in list_step_labels(config)]
    wrong = [key for key, label in labels.items() if label not in choices]
    if wrong:
        return f"Step {', '.join(wrong)}: choose one of {', '.join(choices)}."
    return ""

"""The column of rows whose conversations were judged step by step. Pure."""

from collections.abc import Sequence
from typing import Any

from validation.consensus.consensus import Policy
from validation.consensus.steps import StepLabels, decide_steps

_Vote = tuple[str, str, str | None]


def make_step_rows(
    votes: Sequence[_Vote], step_votes: Sequence[StepLabels], policy: Policy
) -> list[dict[str, Any]]:
    """Return the judged steps of a conversation, in the order of its turns.

    votes: of each person the vote on the whole, `user` or `program`, and the person's pseudonym.
    step_votes: the answers about steps, at the places of the votes; empty for rows without steps.
    """
    # Only steps with votes: others were never judged, or belong to flagged examples.
    decisions = decide_steps(step_votes, policy)
    rows: list[dict[str, Any]] = []
    # Keys are numbers as texts, so that 10 would come before 9.
    for key in sorted(decisions, key=int):
        judgements = []
        # Decisions of owners come after all votes, and are about the whole.
        for (_, kind, name), labels in zip(votes, step_votes, strict=False):
            if key in labels:
                judgements.append((labels[key], kind, name))
        label = decisions[key].label
        rows.append({"turn": int(key), "consensus": label, "judgements": judgements})
    return rows

"""Counts of the steps of conversations that people judge, and how far people agree on them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from core.text.words import gettext_noop
from validation.rates.agreement import compute_krippendorff_alpha
from validation.rates.rates import Rate, Undefined, compute_clustered_rate

NO_STEPS_REASON = gettext_noop("no step has two votes")


@dataclass
class StepCounts:
    """Counts of the steps of a round: those with votes, those decided, and their votes.

    patterns: the number of steps by their (label, number of votes) pairs. examples: the number of
    examples by their number of unanimous steps, and of steps with two votes or more.
    """

    judged: int = 0
    decided: int = 0
    votes: int = 0
    patterns: Counter[tuple[tuple[str, int], ...]] = field(default_factory=Counter)
    examples: Counter[tuple[int, int]] = field(default_factory=Counter)

    def __iadd__(self, other: "StepCounts") -> "StepCounts":
        self.judged += other.judged
        self.decided += other.decided
        self.votes += other.votes
        self.patterns += other.patterns
        self.examples += other.examples
        return self

    def add_example(self, steps: Iterable[tuple[Mapping[str, int], bool]]) -> None:
        """Count an example. steps: the votes by label of each step, and whether it is decided."""
        unanimous = paired = 0
        for votes_by_label, is_decided in steps:
            vote_count = sum(votes_by_label.values())
            self.judged += 1
            self.decided += is_decided
            self.votes += vote_count
            self.patterns[tuple(sorted(votes_by_label.items()))] += 1
            # A single vote shows no agreement.
            if vote_count > 1:
                paired += 1
                unanimous += len(votes_by_label) == 1
        self.examples[unanimous, paired] += 1


def measure_steps(counts: StepCounts) -> dict[str, int | float | Rate | Undefined]:
    """Return the numbers about steps. The steps of one example may depend on one another."""
    # Imported on first use: most requests need no numpy.
    import numpy as np

    # Equal patterns are one row with a weight, so that large rounds suffice with few.
    # Those that somebody chose; the task may have more.
    used_labels: set[str] = set()
    for pattern in counts.patterns:
        used_labels.update(label for label, _ in pattern)
    labels = sorted(used_labels)
    table = np.zeros((len(counts.patterns), len(labels)))
    for row, pattern in enumerate(counts.patterns):
        for label, votes in pattern:
            table[row, labels.index(label)] = votes
    alpha = compute_krippendorff_alpha(table, np.array(list(counts.patterns.values())))
    # With a reason of its own, which is about steps.
    if not any(paired for _, paired in counts.examples):
        alpha = Undefined(NO_STEPS_REASON)
    return {
        "steps_judged": counts.judged,
        "steps_decided": counts.decided,
        "step_votes": counts.votes,
        "step_unanimous_share": compute_clustered_rate(counts.examples.elements(), NO_STEPS_REASON),
        "step_krippendorff_alpha": alpha,
    }

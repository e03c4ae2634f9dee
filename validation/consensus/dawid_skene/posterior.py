"""Dawid and Skene's fitted model: the probable labels of an example with further votes.

Cheap and without numpy, because it runs at each vote. The module `fitting` fits it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from sys import float_info

MIN_PROBABILITY = float_info.min  # a probability of 0 counts heavily, but does not decide alone

Matrix = Sequence[Sequence[float]]
"""True × given label; each row sums to 1."""


@dataclass(frozen=True, slots=True)
class FittedModel:
    """Parameters of a round: label shares, each known validator's matrix, and the crowd's matrix.

    confusion: by validator id as text, because the keys of JSON are texts. votes: the number of
    votes that the model was fitted to.
    """

    labels: Sequence[str]
    prior: Sequence[float]
    crowd: Matrix
    confusion: Mapping[str, Matrix]
    votes: int

    def compute_posterior(self, votes: Iterable[tuple[int | None, str]]) -> dict[str, float]:
        """Return the probability of each label, given (validator, label) votes on one example.

        Empty without votes. Dawid and Skene 1979, equation 2.5. An unknown validator counts as the
        crowd; an unknown label is ignored.
        """
        known_votes = [
            (validator, self.labels.index(label))
            for validator, label in votes
            if label in self.labels
        ]
        if not known_votes:
            return {}
        logs = [log(max(share, MIN_PROBABILITY)) for share in self.prior]
        for validator, label_number in known_votes:
            matrix = self.confusion.get(str(validator), self.crowd)
            for true_label, row in enumerate(matrix):
                logs[true_label] += log(max(row[label_number], MIN_PROBABILITY))
        # Subtracted below, so that exp does not underflow to zero everywhere.
        highest_log = max(logs)
        weights = [exp(value - highest_log) for value in logs]
        return {
            label: weight / sum(weights) for label, weight in zip(self.labels, weights, strict=True)
        }

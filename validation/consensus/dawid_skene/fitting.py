"""A second opinion on labels: Dawid and Skene's model, which learns how reliable people are.

Dawid and Skene 1979, “Maximum likelihood estimation of observer error-rates using the EM algorithm”
(equations 2.3 to 2.5, started from the shares of 3.1), in log space.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from validation.rates.agreement import CodedVotes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Large enough that one or two votes make nobody look perfect or useless.
PSEUDO_VOTES = 4.0
MIN_VOTES_PER_ITEM = 3
MIN_ITEMS_PER_VALIDATOR = 10


@dataclass(frozen=True)
class Aggregation:
    """Estimates from all votes. Probabilities are 0-1; the last axis of each array sums to 1.

    posterior: items × labels. prior: labels. confusion: known validators × true × given label.
    crowd: true × given label of all votes, for unknown people. reliability: for known validators,
    the probability of giving an example its true label. warnings: sentences on why the estimates
    may be unreliable.
    """

    items: Sequence[Hashable]
    validators: Sequence[Hashable]
    labels: Sequence[str]
    posterior: "Floats"
    prior: "Floats"
    confusion: "Floats"
    crowd: "Floats"
    reliability: "Floats"
    iterations: int
    warnings: tuple[str, ...]

    def get_posterior_of(self, row: int) -> dict[str, float]:
        """Return each label's probability for the item in a row, as needed by `decide_by_votes`."""
        return dict(zip(self.labels, self.posterior[row].tolist(), strict=True))


def fit_dawid_skene(
    votes: CodedVotes,
    *,
    pseudo_votes: float = PSEUDO_VOTES,
    tolerance: float = 1e-6,
    max_iterations: int = 500,
) -> Aggregation:
    """Estimate true labels, class priors and confusion matrices by EM.

    Parameters
    ----------
    votes
        Several votes of one validator on one item count as several.
    pseudo_votes
        The weight, in votes on each true label, of the crowd's confusion matrix, which is added to
        each validator's own votes. 0 gives the published maximum likelihood, in which people with
        one vote (also each unknown person) carry no information.
    tolerance
        Iteration stops when no posterior changes by more than this.
    max_iterations
        Iteration stops after this number, with a warning.

    Returns
    -------
    Aggregation
        The estimates; the same votes always give the same ones.

    Notes
    -----
    Dawid and Skene 1979, equations 2.3 to 2.5, started from the shares of 3.1.
    """
    import numpy as np

    vote_table = _VoteTable.from_votes(votes)
    # EM finds a local maximum, so it starts near the right one: at the majority.
    posterior = _compute_shares(votes)
    steps, largest_change = 0, 1.0
    while largest_change > tolerance and steps < max_iterations:
        prior, confusion = vote_table.estimate_parameters(posterior, pseudo_votes)
        previous, posterior = (
            posterior,
            vote_table.estimate_posterior(prior, confusion, len(votes.items)),
        )
        largest_change = float(np.abs(posterior - previous).max(initial=0))
        steps += 1
    # Computed once more, to match the final posterior.
    prior, confusion = vote_table.estimate_parameters(posterior, pseudo_votes)
    # Without unknown people, because each of them has only one vote.
    confusion = confusion[: len(votes.validators)]
    crowd = vote_table.count_crowd_votes(posterior)
    warnings = _list_warnings(votes)
    if largest_change > tolerance:
        warnings += (f"The estimates still moved by {largest_change:.1g} after {steps} steps.",)
    return Aggregation(
        votes.items,
        votes.validators,
        votes.labels,
        posterior,
        prior,
        confusion,
        crowd / crowd.sum(axis=1, keepdims=True),
        # The probability of giving the true label, weighted by the frequency of each label.
        np.einsum("vkk,k->v", confusion, prior),
        steps,
        warnings,
    )


@dataclass(frozen=True)
class _VoteTable:
    """The votes in their original order: item, and the flat index of (validator, given label)."""

    item: "NDArray[np.int64]"
    cell_index: "NDArray[np.int64]"
    validators: int
    labels: int

    @classmethod
    def from_votes(cls, votes: CodedVotes) -> "_VoteTable":
        labels = len(votes.labels)
        people = int(votes.validator.max(initial=-1)) + 1
        return cls(votes.item, votes.validator * labels + votes.label, people, labels)

    def estimate_parameters(
        self, posterior: "Floats", pseudo_votes: float
    ) -> tuple["Floats", "Floats"]:
        """Return class priors and confusion matrices for given posteriors.

        The matrices are validators × true × given label.
        """
        import numpy as np

        votes = self._count_weighted_votes(posterior)
        # A true label without any votes would divide by 0.
        crowd = votes.sum(axis=0) + 1e-9
        votes += pseudo_votes * crowd / crowd.sum(axis=1, keepdims=True)
        totals = votes.sum(axis=2, keepdims=True)
        # Without pseudo votes, a person may have no votes on some true label.
        confusion = np.divide(votes, totals, out=np.zeros_like(votes), where=totals > 0)
        return posterior.mean(axis=0), confusion

    def count_crowd_votes(self, posterior: "Floats") -> "Floats":
        """Count all votes together: true × given label, with no cell exactly 0."""
        total: Floats = self._count_weighted_votes(posterior).sum(axis=0) + 1e-9
        return total

    def _count_weighted_votes(self, posterior: "Floats") -> "Floats":
        """Count votes, each divided among true labels by its item's posterior.

        The result is validators × true × given label.
        """
        import numpy as np

        size = self.validators * self.labels
        return np.stack(
            [
                np.bincount(self.cell_index, column[self.item], minlength=size).reshape(
                    -1, self.labels
                )
                for column in posterior.T
            ],
            axis=1,
        )

    def estimate_posterior(self, prior: "Floats", confusion: "Floats", items: int) -> "Floats":
        """Return posteriors (items × labels) for given priors and confusion matrices."""
        import numpy as np

        # A probability of 0 counts heavily, but does not decide alone.
        smallest_float = np.finfo(np.float64).tiny
        weight = (
            np.log(np.maximum(confusion, smallest_float))
            .transpose(1, 0, 2)
            .reshape(self.labels, -1)
        )
        logs = np.stack(
            [np.bincount(self.item, row[self.cell_index], minlength=items) for row in weight],
            axis=1,
        ) + np.log(np.maximum(prior, smallest_float))
        # Shifted, so that exp neither overflows nor underflows to zero everywhere.
        logs -= logs.max(axis=1, keepdims=True)
        posterior: Floats = np.exp(logs)
        posterior /= posterior.sum(axis=1, keepdims=True)
        return posterior


def _compute_shares(votes: CodedVotes) -> "Floats":
    """Return each item's votes as shares, the starting point of EM."""
    table = votes.build_table().astype(float)
    shares: Floats = table / table.sum(axis=1, keepdims=True)
    return shares


def _list_warnings(votes: CodedVotes) -> tuple[str, ...]:
    """Return warnings if votes are too few to tell a careless person from a hard example."""
    warnings = []
    if len(votes.item) < MIN_VOTES_PER_ITEM * len(votes.items):
        warnings.append(
            f"There are fewer than {MIN_VOTES_PER_ITEM} votes an example; trust the majority more."
        )
    if len(votes.item) < MIN_ITEMS_PER_VALIDATOR * len(set(votes.validator.tolist())):
        warnings.append(
            f"There are fewer than {MIN_ITEMS_PER_VALIDATOR} votes a validator, so most are taken "
            "to be as good as the crowd."
        )
    return tuple(warnings)

"""Agreement of validators beyond chance, together and of each with the others.

Only labels (or verdicts) are passed in; “cannot tell” is a missing vote. The functions over all
items take a table of items × labels with the number of votes in each cell; `weights` says how many
items have that row, so that the few different rows of a large round suffice.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.text.words import gettext_noop
from validation.rates.rates import Rate, Undefined, compute_rate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

ItemVote = tuple[Hashable, Hashable | None, str]
"""A vote as (item, validator, label); None stands for a different unknown person each time."""

MAX_CHOICES = 60
"""If there are more different answers, they are free text, and no agreement is computed."""
NO_PAIRS_REASON = gettext_noop("no example has two votes")
SAME_LABEL_REASON = gettext_noop(
    "all votes are the same label, so agreement by chance explains them"
)


@dataclass(frozen=True)
class CodedVotes:
    """Encoded votes: three arrays with one entry per vote, and the meaning of the codes.

    Validators from `len(validators)` on are unknown people with one vote each. Labels are sorted;
    items and validators are in the order of their first vote.
    """

    items: Sequence[Hashable]
    validators: Sequence[Hashable]
    labels: Sequence[str]
    item: "Ints"
    validator: "Ints"
    label: "Ints"

    def build_table(self) -> "Ints":
        """Count the votes of each item for each label: items × labels."""
        return _count_pairs(self.item, self.label, len(self.items), len(self.labels))


@dataclass(frozen=True, slots=True)
class Reliability:
    """One validator's agreement with the others on the same items.

    agreement: the mean share (0-1) of the others' votes that are equal, over the `items` judged
    with other people, with Wilson's interval. kappa: the agreement beyond chance, at most 1.
    """

    agreement: Rate
    chance_agreement: float
    kappa: float | Undefined

    @property
    def items(self) -> int:
        return self.agreement.n


def encode_votes(votes: Iterable[ItemVote]) -> CodedVotes:
    """Encode votes as the indices of their items, validators and labels."""
    # Imported on first use: most requests need no numpy.
    import numpy as np

    rows = list(votes)
    items: dict[Hashable, int] = {}
    validators: dict[Hashable, int] = {}
    item_index = [items.setdefault(row[0], len(items)) for row in rows]
    validator_numbers = [
        -1 if row[1] is None else validators.setdefault(row[1], len(validators)) for row in rows
    ]
    labels = sorted({row[2] for row in rows})
    label_index = {label: number for number, label in enumerate(labels)}
    validator_index = np.array(validator_numbers, dtype=np.int64)
    is_unknown = validator_index < 0
    validator_index[is_unknown] = len(validators) + np.arange(is_unknown.sum())
    return CodedVotes(
        tuple(items),
        tuple(validators),
        labels,
        np.array(item_index, dtype=np.int64),
        validator_index,
        np.array([label_index[row[2]] for row in rows], dtype=np.int64),
    )


def compute_fleiss_kappa(table: Any, weights: Any = None) -> float | Undefined:
    """Compute Fleiss' kappa of items × labels.

    Parameters
    ----------
    table
        Items × labels: the number of votes in each cell.
    weights
        The number of items that each row represents; None for one item per row.

    Returns
    -------
    float or Undefined
        At most 1; 0 is chance agreement.

    Notes
    -----
    Fleiss 1971, equations 3 to 7: (observed - chance) / (1 - chance). If items have different
    numbers of votes, each item's agreement is that of its own pairs of votes. All items with two
    or more votes have the same weight, and a label's share is over all votes on these items.
    """
    import numpy as np

    counts, row_weights = _select_paired_rows(table, weights)
    if not len(counts):
        return Undefined(NO_PAIRS_REASON)
    votes = counts.sum(axis=1)
    agreement = (counts * (counts - 1)).sum(axis=1) / (votes * (votes - 1))
    shares = row_weights @ counts / (row_weights @ votes)
    chance_share = float(shares @ shares)
    observed = float(np.average(agreement, weights=row_weights))
    return _compute_agreement_beyond_chance(observed, chance_share)


def compute_krippendorff_alpha(table: Any, weights: Any = None) -> float | Undefined:
    """Compute Krippendorff's alpha for nominal labels and missing votes.

    Parameters
    ----------
    table
        Items × labels: the number of votes in each cell.
    weights
        The number of items that each row represents; None for one item per row.

    Returns
    -------
    float or Undefined
        At most 1; 0 is chance agreement.

    Notes
    -----
    Krippendorff 2011, section C. Each pair of votes on an item counts 1/(votes - 1), so each vote
    counts once. Items with a single vote are left out.
    """
    counts, row_weights = _select_paired_rows(table, weights)
    if not len(counts):
        return Undefined(NO_PAIRS_REASON)
    votes = counts.sum(axis=1)
    totals = row_weights @ counts
    total = float(totals.sum())
    same_share = float(row_weights @ ((counts * (counts - 1)).sum(axis=1) / (votes - 1))) / total
    # Without replacement of the first vote: alpha's correction for few votes.
    chance_share = float(totals @ (totals - 1)) / (total * (total - 1))
    return _compute_agreement_beyond_chance(same_share, chance_share)


def compute_reliabilities(votes: CodedVotes) -> dict[Hashable, Reliability]:
    """Compare each known validator with the others on their common items (leave-one-out).

    Notes
    -----
    Chance agreement compares the validator's own labels with labels drawn from all votes of other
    people, not only from the same items. So agreement on a rare label counts more.
    """
    import numpy as np

    validator_count, label_count = len(votes.validators), len(votes.labels)
    if not label_count:
        return {}
    pairs = _group_by_item_and_validator(votes)
    table = votes.build_table()
    other_votes = table[pairs.item].sum(axis=1) - pairs.counts.sum(axis=1)
    equal_pairs = (pairs.counts * (table[pairs.item] - pairs.counts)).sum(axis=1)
    is_compared = (pairs.validator < validator_count) & (other_votes > 0)
    validator_indices, own_counts = pairs.validator[is_compared], pairs.counts[is_compared]
    # A person's several votes on an item weigh as much as one item.
    share = equal_pairs[is_compared] / (own_counts.sum(axis=1) * other_votes[is_compared])
    items = np.bincount(validator_indices, minlength=validator_count)
    agreement_sums = np.bincount(validator_indices, share, minlength=validator_count)
    weight = own_counts / own_counts.sum(axis=1, keepdims=True)
    own_shares = (
        np.column_stack(
            [
                np.bincount(validator_indices, weight[:, index], minlength=validator_count)
                for index in range(label_count)
            ]
        )
        # 1 instead of 0: people without such an item are left out below.
        / np.maximum(items, 1)[:, None]
    )
    vote_count = _count_pairs(
        votes.validator, votes.label, votes.validator.max(initial=-1) + 1, label_count
    )[:validator_count]
    other_count = table.sum(axis=0) - vote_count
    chance = (own_shares * other_count).sum(axis=1) / np.maximum(other_count.sum(axis=1), 1)
    return {
        votes.validators[validator]: _compute_reliability(
            float(agreement_sums[validator]), int(items[validator]), float(chance[validator])
        )
        for validator in np.flatnonzero(items).tolist()
    }


def _compute_reliability(agreed_sum: float, items: int, chance_share: float) -> Reliability:
    # Because of rounding, sums of shares can slightly exceed the number of items.
    agreement = compute_rate(min(agreed_sum, items), items)
    assert isinstance(agreement, Rate)
    return Reliability(
        agreement, chance_share, _compute_agreement_beyond_chance(agreement.value, chance_share)
    )


def _compute_agreement_beyond_chance(
    observed_share: float, chance_share: float
) -> float | Undefined:
    """Return the share of the possible agreement beyond chance that was reached."""
    # Rounding may give just below 1, where the quotient would be noise.
    if chance_share > 1 - 1e-12:
        return Undefined(SAME_LABEL_REASON)
    return (observed_share - chance_share) / (1 - chance_share)


def _convert_to_arrays(table: Any, weights: Any) -> tuple["Floats", "Floats"]:
    """Return the table and the weights of its rows as arrays."""
    import numpy as np

    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2:
        raise ValueError("A table of votes has one row for each item and one column a label.")
    row_weights = np.ones(len(counts)) if weights is None else np.asarray(weights, dtype=np.float64)
    return counts, row_weights


def _select_paired_rows(table: Any, weights: Any) -> tuple["Floats", "Floats"]:
    """Return the rows with at least two votes, and their weights.

    Only these rows can show agreement.
    """
    counts, row_weights = _convert_to_arrays(table, weights)
    has_pairs = (counts.sum(axis=1) >= 2) & (row_weights > 0)
    return counts[has_pairs], row_weights[has_pairs]


def _count_pairs(rows: "Ints", columns: "Ints", height: int, width: int) -> "Ints":
    """Count how often each pair occurs: height × width."""
    import numpy as np

    pair_counts = np.bincount(rows * width + columns, minlength=height * width)
    return pair_counts.reshape(height, width)


@dataclass(frozen=True)
class _OwnVotes:
    """Arrays with one row for each validator and item: the validator's votes on the item."""

    item: "Ints"
    validator: "Ints"
    counts: "Ints"
    """Rows × labels; more than one vote where a validator voted again."""


def _group_by_item_and_validator(votes: CodedVotes) -> _OwnVotes:
    import numpy as np

    people = votes.validator.max(initial=-1) + 1
    pairs, pair_index = np.unique(votes.item * people + votes.validator, return_inverse=True)
    counts = _count_pairs(pair_index, votes.label, len(pairs), len(votes.labels))
    return _OwnVotes(pairs // max(people, 1), pairs % max(people, 1), counts)

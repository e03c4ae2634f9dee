"""Agreement of validators beyond chance, together and of each with the others.

Only labels (or verdicts) are passed in; “cannot tell” is a missing vote. The functions over all
items take a table of items × labels with the number of votes in each cell; `weights` says how many
items have that row, so that the few different rows of a large round suffice.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.text.words import gettext_noop
from validation.rates.rates import Rate, Undefined, rate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

ItemVote = tuple[Hashable, Hashable | None, str]
"""Item, validator (None: somebody else each time), label."""

MOST_CHOICES = 60
"""With more different answers they are free text, and agreement is not computed."""
NO_PAIRS = gettext_noop("no example has two votes")
ALL_THE_SAME = gettext_noop("all votes are the same label, so chance explains them")


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

    def table(self) -> "Ints":
        """Count the votes of each item for each label: items × labels."""
        return _cross(self.item, self.label, len(self.items), len(self.labels))


@dataclass(frozen=True, slots=True)
class Reliability:
    """One validator's agreement with the others on the same items.

    agreement: the mean share (0-1) of the others' votes that are equal, over the `items` judged
    with other people, with Wilson's interval. kappa: the part of it beyond chance, at most 1.
    """

    agreement: Rate
    by_chance: float
    kappa: float | Undefined

    @property
    def items(self) -> int:
        return self.agreement.n


def code_votes(votes: Iterable[ItemVote]) -> CodedVotes:
    """Encode votes as the indices of their items, validators and labels."""
    # Imported on first use: most requests need no numpy.
    import numpy as np

    rows = list(votes)
    items: dict[Hashable, int] = {}
    validators: dict[Hashable, int] = {}
    item = [items.setdefault(row[0], len(items)) for row in rows]
    validator_numbers = [
        -1 if row[1] is None else validators.setdefault(row[1], len(validators)) for row in rows
    ]
    labels = sorted({row[2] for row in rows})
    numbers = {label: number for number, label in enumerate(labels)}
    validator = np.array(validator_numbers, dtype=np.int64)
    unknown = validator < 0
    validator[unknown] = len(validators) + np.arange(unknown.sum())
    return CodedVotes(
        tuple(items),
        tuple(validators),
        labels,
        np.array(item, dtype=np.int64),
        validator,
        np.array([numbers[row[2]] for row in rows], dtype=np.int64),
    )


def fleiss_kappa(table: Any, weights: Any = None) -> float | Undefined:
    """Compute Fleiss' kappa of items × labels.

    Parameters
    ----------
    table
        Items × labels: the number of votes in each cell.
    weights
        How many items have each row; None: one.

    Returns
    -------
    float or Undefined
        At most 1; 0 is the agreement of chance.

    Notes
    -----
    Fleiss 1971, equations 3 to 7: (observed - chance) / (1 - chance). Where items have different
    numbers of votes, each item's agreement is that of its own pairs, items with two votes or more
    count alike, and a label's share is over all votes on them.
    """
    import numpy as np

    counts, times = _keep_paired_rows(table, weights)
    if not len(counts):
        return Undefined(NO_PAIRS)
    votes = counts.sum(axis=1)
    agreement = (counts * (counts - 1)).sum(axis=1) / (votes * (votes - 1))
    shares = times @ counts / (times @ votes)
    by_chance = float(shares @ shares)
    observed = float(np.average(agreement, weights=times))
    return _agreement_beyond_chance(observed, by_chance)


def krippendorff_alpha(table: Any, weights: Any = None) -> float | Undefined:
    """Compute Krippendorff's alpha for nominal labels and missing votes.

    Parameters
    ----------
    table
        Items × labels: the number of votes in each cell.
    weights
        How many items have each row; None: one.

    Returns
    -------
    float or Undefined
        At most 1; 0 is the agreement of chance.

    Notes
    -----
    Krippendorff 2011, section C. Each pair of votes on an item counts 1/(votes - 1), so each vote
    counts once. Items with a single vote are left out.
    """
    counts, times = _keep_paired_rows(table, weights)
    if not len(counts):
        return Undefined(NO_PAIRS)
    votes = counts.sum(axis=1)
    totals = times @ counts
    n = float(totals.sum())
    same_share = float(times @ ((counts * (counts - 1)).sum(axis=1) / (votes - 1))) / n
    # Without putting the first vote back: alpha's correction for few votes.
    by_chance = float(totals @ (totals - 1)) / (n * (n - 1))
    return _agreement_beyond_chance(same_share, by_chance)


def reliabilities(votes: CodedVotes) -> dict[Hashable, Reliability]:
    """Compare each known validator with the others on their common items (leave-one-out).

    Notes
    -----
    Chance: the validator's own labels against labels drawn from all votes of other people, not
    only from the same items, so agreement on a rare label counts more.
    """
    import numpy as np

    people, kinds = len(votes.validators), len(votes.labels)
    if not kinds:
        return {}
    pairs = _per_item_and_validator(votes)
    table = votes.table()
    other_votes = table[pairs.item].sum(axis=1) - pairs.counts.sum(axis=1)
    equal = (pairs.counts * (table[pairs.item] - pairs.counts)).sum(axis=1)
    is_compared = (pairs.validator < people) & (other_votes > 0)
    validator_places, own_counts = pairs.validator[is_compared], pairs.counts[is_compared]
    # Several votes of one person on an item weigh as one item.
    share = equal[is_compared] / (own_counts.sum(axis=1) * other_votes[is_compared])
    items = np.bincount(validator_places, minlength=people)
    agreed_sums = np.bincount(validator_places, share, minlength=people)
    weight = own_counts / own_counts.sum(axis=1, keepdims=True)
    own_shares = (
        np.column_stack(
            [np.bincount(validator_places, weight[:, k], minlength=people) for k in range(kinds)]
        )
        # 1 in place of 0: people without such an item are left out below.
        / np.maximum(items, 1)[:, None]
    )
    cast = _cross(votes.validator, votes.label, votes.validator.max(initial=-1) + 1, kinds)[:people]
    left = table.sum(axis=0) - cast
    chance = (own_shares * left).sum(axis=1) / np.maximum(left.sum(axis=1), 1)
    return {
        votes.validators[v]: _reliability(float(agreed_sums[v]), int(items[v]), float(chance[v]))
        for v in np.flatnonzero(items).tolist()
    }


def _reliability(agreed_sum: float, items: int, by_chance: float) -> Reliability:
    # Sums of shares can end a rounding error above the number of items.
    agreement = rate(min(agreed_sum, items), items)
    assert isinstance(agreement, Rate)
    return Reliability(agreement, by_chance, _agreement_beyond_chance(agreement.value, by_chance))


def _agreement_beyond_chance(observed_share: float, by_chance: float) -> float | Undefined:
    """Return the share of the possible agreement beyond chance that was reached."""
    # Rounding may end just below 1, where the quotient would be noise.
    if by_chance > 1 - 1e-12:
        return Undefined(ALL_THE_SAME)
    return (observed_share - by_chance) / (1 - by_chance)


def _arrays(table: Any, weights: Any) -> tuple["Floats", "Floats"]:
    """Return the table and the weights of its rows as arrays."""
    import numpy as np

    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2:
        raise ValueError("A table of votes has one row for each item and one column a label.")
    times = np.ones(len(counts)) if weights is None else np.asarray(weights, dtype=np.float64)
    return counts, times


def _keep_paired_rows(table: Any, weights: Any) -> tuple["Floats", "Floats"]:
    """Return the rows with at least two votes, because only these can show agreement."""
    counts, times = _arrays(table, weights)
    has_pairs = (counts.sum(axis=1) >= 2) & (times > 0)
    return counts[has_pairs], times[has_pairs]


def _cross(rows: "Ints", columns: "Ints", height: int, width: int) -> "Ints":
    """Count how often each pair occurs: height × width."""
    import numpy as np

    pair_counts = np.bincount(rows * width + columns, minlength=height * width)
    return pair_counts.reshape(height, width)


@dataclass(frozen=True)
class _OwnVotes:
    """A query with one row for each validator and item: the validator's votes on it."""

    item: "Ints"
    validator: "Ints"
    counts: "Ints"
    """Rows × labels; more than one vote where a validator voted again."""


def _per_item_and_validator(votes: CodedVotes) -> _OwnVotes:
    import numpy as np

    people = votes.validator.max(initial=-1) + 1
    pairs, which = np.unique(votes.item * people + votes.validator, return_inverse=True)
    counts = _cross(which, votes.label, len(pairs), len(votes.labels))
    return _OwnVotes(pairs // max(people, 1), pairs % max(people, 1), counts)

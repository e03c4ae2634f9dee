"""How much the votes on one example agree. Pure."""

from collections.abc import Iterable


def compute_agreement(counts: Iterable[int]) -> float | None:
    """Return the share of pairs of votes that are equal; None for fewer than two votes.

    counts: how many votes each answer has.

    >>> compute_agreement([2, 1])
    0.3333333333333333
    """
    sizes = list(counts)
    total = sum(sizes)
    if total < 2:
        return None
    return sum(size * (size - 1) for size in sizes) / (total * (total - 1))

"""Which examples are alike, and what a bonus is worth for one that was found before."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

WORDS = (0.5, 0.9)
MEANING = (0.75, 0.95)
"""From where on a likeness counts, and where it is that of a copy: Jaccard's and a cosine."""


def clusters(
    keys: Mapping[int, Iterable[int]], links: Iterable[tuple[int, int]] = ()
) -> list[list[int]]:
    """Groups of examples that share a key or are linked, directly or over others; largest first.

    keys: of each example, its near-duplicate signatures (`annotation.rules.near_duplicates`).

    >>> clusters({1: {7}, 2: {8, 7}, 3: {9}, 4: ()}, [(3, 4)])
    [[1, 2], [3, 4]]
    """
    root = {one: one for one in keys}

    def find(one: int) -> int:
        while root[one] != one:
            root[one] = one = root[root[one]]
        return one

    first: dict[int, int] = {}
    for one, own in keys.items():
        for key in own:
            root[find(one)] = find(first.setdefault(key, one))
    for one, other in links:
        root[find(one)] = find(other)
    found = defaultdict(list)
    for one in sorted(keys):
        found[find(one)].append(one)
    return sorted(found.values(), key=lambda group: (-len(group), group[0]))


def novelty(words: float, meaning: float = 0.0) -> float:
    """What is new in an example, in tenths: 1 where nothing like it was there, 0 for a copy.

    words: Jaccard's similarity to the likest before it; meaning: the greatest cosine.

    >>> novelty(0.4, 0.3), novelty(0.7), novelty(0.2, 0.85), novelty(1.0, 0.0)
    (1.0, 0.5, 0.5, 0.0)
    """
    return round(1 - max(_between(words, *WORDS), _between(meaning, *MEANING)), 1)


def _between(value: float, least: float, most: float) -> float:
    """How far a value is on its way, 0 to 1."""
    return min(1.0, max(0.0, (value - least) / (most - least)))

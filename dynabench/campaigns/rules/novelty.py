"""Similarity of examples, and the share of a bonus that a repeated find earns."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

WORD_BOUNDS = (0.5, 0.9)
"""The bounds of the Jaccard similarity of words.

At the lower bound, an example begins to count as similar. At the upper bound, it is a copy.
"""
MEANING_BOUNDS = (0.75, 0.95)
"""Cosine similarity of meanings, with bounds as in WORD_BOUNDS."""


def cluster_examples(
    keys: Mapping[int, Iterable[int]], links: Iterable[tuple[int, int]] = ()
) -> list[list[int]]:
    """Return groups of examples that are connected by shared keys or links, largest first.

    keys: near-duplicate signatures by example (`annotation.rules.near_duplicates`).

    >>> cluster_examples({1: {7}, 2: {8, 7}, 3: {9}, 4: ()}, [(3, 4)])
    [[1, 2], [3, 4]]
    """
    # A forest of disjoint sets: each example points towards its group's root.
    parent = {example: example for example in keys}

    def find_root(example: int) -> int:
        while parent[example] != example:
            # Each step shortens the path for the next search.
            parent[example] = parent[parent[example]]
            example = parent[example]
        return example

    first_by_key: dict[int, int] = {}
    for example, own_keys in keys.items():
        for key in own_keys:
            parent[find_root(example)] = find_root(first_by_key.setdefault(key, example))
    for example, linked_example in links:
        parent[find_root(example)] = find_root(linked_example)
    groups = defaultdict(list)
    for example in sorted(keys):
        groups[find_root(example)].append(example)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0]))


def score_novelty(words: float, meaning: float = 0.0) -> float:
    """Return an example's novelty in tenths: from 0 for a copy to 1 if nothing is similar.

    words: the greatest Jaccard similarity to an earlier example. meaning: the greatest cosine
    similarity to one. Each rises linearly from 0 at its lower bound to 1 at its upper
    bound (WORD_BOUNDS, MEANING_BOUNDS); the greater of the two determines the result.

    >>> score_novelty(0.4, 0.3), score_novelty(0.7), score_novelty(0.2, 0.85)
    (1.0, 0.5, 0.5)
    """
    return round(
        1 - max(_scale_between(words, *WORD_BOUNDS), _scale_between(meaning, *MEANING_BOUNDS)), 1
    )


def _scale_between(value: float, lower_bound: float, upper_bound: float) -> float:
    """Return the relative position of a value between the bounds, limited to 0 to 1."""
    return min(1.0, max(0.0, (value - lower_bound) / (upper_bound - lower_bound)))

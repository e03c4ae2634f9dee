"""Which examples are alike, and what a bonus is worth for one that was found before."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from annotation.rules.near_duplicates import are_alike


def clusters(keys: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """Groups of examples that share a key, directly or over others; the largest first.

    keys: of each example, its near-duplicate signatures (`annotation.rules.near_duplicates`).

    >>> clusters({1: {7}, 2: {8, 7}, 3: {9}})
    [[1, 2], [3]]
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
    found = defaultdict(list)
    for one in sorted(keys):
        found[find(one)].append(one)
    return sorted(found.values(), key=lambda group: (-len(group), group[0]))


def share(text: str, earlier: Iterable[str]) -> float:
    """The share of the bonus: 1 for a text of which none before is nearly the same, then 1/2, 1/3.

    >>> share("The mill burned down in that year.", ["The mill burned down in that year!"])
    0.5
    """
    return 1 / (1 + sum(are_alike(text, other) for other in earlier))

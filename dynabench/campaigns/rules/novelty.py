"""Which examples are alike, and what a bonus is worth for one that was found before."""

from collections.abc import Mapping, Set


def clusters(keys: Mapping[int, Set[int]], least: int) -> list[list[int]]:
    """Groups of examples that share `least` keys or more with another one; the largest first.

    keys: of each example, its near-duplicate signatures (`annotation.rules.near_duplicates`).

    >>> clusters({1: {7, 8}, 2: {8, 7}, 3: {9}}, 2)
    [[1, 2], [3]]
    """
    by_key: dict[int, list[int]] = {}
    for example, own in sorted(keys.items()):
        for key in own:
            by_key.setdefault(key, []).append(example)
    shared: dict[tuple[int, int], int] = {}
    for found in by_key.values():
        for place, first in enumerate(found):
            for second in found[place + 1 :]:
                shared[first, second] = shared.get((first, second), 0) + 1
    group = {example: {example} for example in keys}
    for (first, second), number in shared.items():
        if number >= least and group[first] is not group[second]:
            merged = group[first] | group[second]
            for example in merged:
                group[example] = merged
    unique = {min(one): sorted(one) for one in group.values()}
    return sorted(unique.values(), key=lambda one: (-len(one), one[0]))


def weights(groups: list[list[int]]) -> dict[int, float]:
    """Of each example, the share of the bonus: 1 for the first of its group, then 1/2, 1/3, ….

    >>> weights([[4, 9, 11]])[11]
    0.3333333333333333
    """
    return {one: 1 / place for group in groups for place, one in enumerate(group, 1)}

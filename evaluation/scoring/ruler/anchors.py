"""Choose the anchors: few items that every model answers, old and new. Pure.

Half of the anchors tell models apart best, spread over difficulty. Items are ordered by their
share of right answers and cut into strata. Each stratum gives those whose answers vary most with
the models' scores. If these were all, the choice would fit the known models too well: part of what
tells them apart is chance. So the other half is drawn at random from all levels of difficulty.

The information of a fitted response model isn't used. It chooses items that tell apart what the
response model expects, which new models need not follow.
"""

import numpy as np
from numpy.typing import NDArray

from evaluation.scoring.ruler.matrices import ItemGroups

STRATUM_COUNT = 5
MIN_ANCHORS = 10


def choose_anchors(
    is_right: NDArray[np.bool_],
    groups: ItemGroups,
    count: int,
    random: np.random.Generator,
    candidates: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Return the columns of the anchors, in ascending order.

    Parameters
    ----------
    is_right
        Answers of the known models: one row for each model, one column for each item.
    groups
        The group of each item.
    count
        The number of anchors, at least `MIN_ANCHORS`.
    random
        Draws the second half.
    candidates
        The columns to choose from. None: all but those of the last group, which stands for what
        comes later.

    Raises
    ------
    ValueError
        If there are fewer items to choose from, or `count` is too small.
    """
    if candidates is None:
        candidates = np.flatnonzero(groups.group_of < len(groups.names) - 1)
    if not MIN_ANCHORS <= count <= len(candidates):
        raise ValueError(
            f"The number of anchors must be from {MIN_ANCHORS} to {len(candidates)},"
            " the number of items to choose from."
        )
    difficulty = is_right.mean(axis=0)
    telling = compute_covariances(is_right, groups)
    chosen: list[int] = []
    ordered = candidates[np.argsort(difficulty[candidates], kind="stable")]
    for place, stratum in enumerate(np.array_split(ordered, STRATUM_COUNT)):
        # What doesn't divide evenly goes to the hardest strata, one each.
        quota = count // 2 // STRATUM_COUNT + (place < count // 2 % STRATUM_COUNT)
        best_first = stratum[np.argsort(-telling[stratum], kind="stable")]
        chosen.extend(best_first[:quota].tolist())
    rest = ordered[~np.isin(ordered, chosen)]
    # One of each level of difficulty, so that no draw has only easy or only hard items.
    for level in np.array_split(rest, count - len(chosen)):
        chosen.append(int(random.choice(level)))
    return np.sort(np.array(chosen, dtype=np.intp))


def compute_covariances(is_right: NDArray[np.bool_], groups: ItemGroups) -> NDArray[np.float64]:
    """Return for each item how its answers vary with the scores of the models in all groups.

    Each group's scores are standardised first, so that an easy group weighs as much as a hard one.
    """
    shares = groups.compute_shares(is_right)
    spread = shares.std(axis=0)
    # A group in which all models score the same says nothing about them.
    standardised = (shares - shares.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    scores = standardised.mean(axis=1)
    return np.asarray((scores @ is_right) / len(scores))

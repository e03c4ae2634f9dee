"""Try the ruler on a full matrix: hide most answers of some models and predict them. Pure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.scoring.ruler.linking import fit_ruler
from evaluation.scoring.ruler.matrices import AnswerMatrix, ItemGroups
from evaluation.scoring.ruler.prediction import Floats


@dataclass(frozen=True)
class GroupAccuracy:
    """How well one group's scores of new models were predicted."""

    mae_points: float
    """Mean absolute error, in percentage points."""
    spearman: float | None
    """Rank correlation of predicted and true scores. None if one of them is the same for all."""
    coverage95: float
    """The share of intervals that contain the true score."""


def name_whole_models(models: tuple[str, ...], is_by_prefix: bool) -> list[str]:
    """Return for each row the model that it is a version of: its name up to the last `_`."""
    return [name.rpartition("_")[0] or name if is_by_prefix else name for name in models]


def draw_new_models(
    whole_models: list[str], share: float, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Return which rows are new: all versions of a share of the models, at least of one."""
    # Sorted, because the order of a set differs from run to run.
    names = sorted(set(whole_models))
    new_count = max(1, round(share * len(names)))
    new_names = set(random.permutation(names)[:new_count].tolist())
    return np.array([name in new_names for name in whole_models])


def try_ruler(
    matrix: AnswerMatrix,
    groups: ItemGroups,
    *,
    anchor_count: int,
    new_share: float,
    seed: int,
    is_by_prefix: bool,
) -> dict[str, GroupAccuracy]:
    """Return how well the ruler predicts each group for models that answered only the anchors.

    Parameters
    ----------
    matrix, groups
        Answers of all models to all items, and the group of each item.
    anchor_count
        The number of anchors, chosen from all groups but the last.
    new_share
        The share (0-1) of models that are drawn as new.
    seed
        Draws new models and anchors.
    is_by_prefix
        Whether names with the same text before their last `_` are versions of one model.

    Raises
    ------
    TooFewModels, ValueError
        As `fit_ruler`.
    """
    whole_models = name_whole_models(matrix.models, is_by_prefix)
    is_new = draw_new_models(whole_models, new_share, np.random.default_rng(seed))
    known_names = [name for name, new in zip(whole_models, is_new, strict=True) if not new]
    ruler = fit_ruler(matrix.is_right[~is_new], groups, known_names, anchor_count, seed)
    prediction = ruler.predict(matrix.is_right[np.ix_(is_new, ruler.anchors)])

    true_shares = groups.compute_shares(matrix.is_right[is_new])
    errors = np.abs(prediction.shares - true_shares)
    is_inside = (prediction.low <= true_shares) & (true_shares <= prediction.high)
    return {
        name: GroupAccuracy(
            float(100 * errors[:, place].mean()),
            compute_rank_correlation(prediction.shares[:, place], true_shares[:, place]),
            float(is_inside[:, place].mean()),
        )
        for place, name in enumerate(groups.names)
    }


def compute_rank_correlation(left: Floats, right: Floats) -> float | None:
    """Return Spearman's correlation; ties share their mean rank. None if one side is constant."""
    if not left.size or np.ptp(left) == 0 or np.ptp(right) == 0:
        return None
    return float(np.corrcoef(_rank(left), _rank(right))[0, 1])


def _rank(values: Floats) -> Floats:
    # Ranks from 0: the mean of the first and the last place that a value may take.
    in_order = np.sort(values)
    below = np.searchsorted(in_order, values, side="left")
    up_to = np.searchsorted(in_order, values, side="right")
    return (below + up_to - 1) / 2

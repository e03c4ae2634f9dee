"""Points: thanks for valid examples and for careful judging. They are not money.

An example: v · (1 + 3 · f · novelty + scarcity) − r; a judgement: 1 + 2 · agreement beyond chance.
docs/statistics.md says what each part means. Nothing here is stored.
"""

from collections.abc import Iterable

# Above this, a text counts as a copy (docs/statistics.md, “Points”).
MIN_SAME_SIMILARITY = 0.9


def compute_novelty(similarity: float) -> float:
    """Return the novelty of a text: 1 down to 0.3, and 0 for a copy.

    similarity: the greatest similarity (0-1) to a text with which the author fooled a model before,
    or to another person's text.
    """
    return 0.0 if similarity > MIN_SAME_SIMILARITY else min(1.0, max(0.3, 1.2 - similarity))


def compute_scarcity(verified_count: int, total_count: int, label_count: int) -> float:
    """Return how far a label is below its equal share (0-1).

    Parameters
    ----------
    verified_count
        The number of examples with the label.
    total_count
        The number of examples with any label.
    label_count
        The number of different labels of the task.
    """
    return max(0.0, 1 - verified_count * label_count / total_count) if total_count else 0.0


def compute_example_points(
    *, is_verified: bool, is_wrong: bool, is_fooled: bool, novelty: float, scarcity: float
) -> float:
    """Compute the points of a decided example: −1 to 5.

    Parameters
    ----------
    is_verified
        Whether people agree with the author.
    is_wrong
        Whether people find the author's label wrong.
    is_fooled
        Whether the model was wrong.
    novelty
        As `compute_novelty` returns it.
    scarcity
        As `compute_scarcity` returns it.
    """
    if not is_verified:
        return -float(is_wrong)
    return 1 + 3 * is_fooled * novelty + scarcity


def compute_vote_points(kappa: float | None) -> float:
    """Compute the points of a judgement (1 to 3), by the agreement with others beyond chance."""
    return 1 + 2 * max(0.0, kappa or 0.0)


def compute_day_total(points: Iterable[float]) -> float:
    """Sum the points of one day; a negative sum counts as 0."""
    return max(0.0, sum(points))

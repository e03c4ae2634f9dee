"""Points: thanks for valid examples and for careful judging. They are not money.

An example: v · (1 + 3 · f · novelty + scarcity) − r; a judgement: 1 + 2 · agreement beyond chance.
docs/statistics.md says what each part means. Nothing here is stored.
"""

from collections.abc import Iterable

# Above it a text counts as a copy (docs/statistics.md, “Points”).
SAME = 0.9


def novelty(similarity: float) -> float:
    """Return the novelty of a text: 1 down to 0.3, and 0 for a copy.

    similarity: the greatest similarity (0-1) to a text with which the author fooled a model before,
    or to another person's text.
    """
    return 0.0 if similarity > SAME else min(1.0, max(0.3, 1.2 - similarity))


def scarcity(have: int, in_all: int, labels: int) -> float:
    """Return how far a label is below its equal share (0-1).

    Parameters
    ----------
    have
        The number of examples with the label.
    in_all
        The number of examples with any label.
    labels
        The number of different labels of the task.
    """
    return max(0.0, 1 - have * labels / in_all) if in_all else 0.0


def example_points(
    *, verified: bool, is_wrong: bool, fooled: bool, novelty: float, scarcity: float
) -> float:
    """Compute the points of a decided example: −1 to 5.

    Parameters
    ----------
    verified
        People agree with the author.
    is_wrong
        People agree on another label.
    fooled
        The model was wrong.
    novelty
        As `novelty` returns it.
    scarcity
        As `scarcity` returns it.
    """
    if not verified:
        return -float(is_wrong)
    return 1 + 3 * fooled * novelty + scarcity


def vote_points(kappa: float | None) -> float:
    """Compute the points of a judgement (1 to 3), by the agreement with others beyond chance."""
    return 1 + 2 * max(0.0, kappa or 0.0)


def day_total(points: Iterable[float]) -> float:
    """Sum the points of one day; a negative sum counts as 0."""
    return max(0.0, sum(points))

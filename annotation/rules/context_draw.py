"""Draw contexts by expected information about where the model errs; a tenth of draws are uniform.

The contexts of a round form cells: a cell is a tag, and contexts without one share a cell. A
cell's error rate, of the tries that people confirmed, has a Beta posterior. The next try goes to
the cells where it is expected to lower the variance of that rate the most (Cohn, Ghahramani and
Jordan 1996).

The uniform tenth bounds how rarely a context is drawn, so that rates can be weighted back
(Hesterberg 1995). docs/statistics.md has the formulas.
"""

import random
from collections.abc import Mapping
from typing import NamedTuple

UNIFORM_SHARE = 0.1
"""The share of draws in which all contexts have the same probability."""
PRIOR_ERRORS, PRIOR_RIGHT = 1.0, 1.0
"""The uniform prior of a cell's error rate: a cell without tries is the least known."""


class CellEvidence(NamedTuple):
    """What a round's tries say about the model's error rate on a cell.

    errors, right: confirmed tries on which the model was wrong, and right. pending: tries that
    people have not decided.
    """

    errors: int = 0
    right: int = 0
    pending: int = 0


class ContextDraw(NamedTuple):
    """A drawn context: the cell, and its position among the cell's contexts, from 0.

    probability: with which this context was drawn. choices: how many contexts could be drawn.
    """

    cell: str
    position: int
    probability: float
    choices: int


def compute_gain(evidence: CellEvidence) -> float:
    """Return by how much a further try is expected to lower the variance of a cell's error rate.

    Pending tries will lower it first. After k tries, a variance V of a posterior with the weight s
    is expected to be V s / (s + k).
    """
    errors, right = PRIOR_ERRORS + evidence.errors, PRIOR_RIGHT + evidence.right
    weight = errors + right
    variance = errors * right / (weight**2 * (weight + 1))
    waiting = weight + evidence.pending
    return variance * weight / (waiting * (waiting + 1))


def compute_cell_probabilities(
    context_counts: Mapping[str, int], evidence: Mapping[str, CellEvidence]
) -> dict[str, float]:
    """Return the probability that the next context is of a cell, by cell.

    context_counts: the number of contexts of each cell that may be given to the person, at least 1.
    evidence: by cell; a missing cell has no tries.
    """
    gains = {cell: compute_gain(evidence.get(cell, CellEvidence())) for cell in context_counts}
    total_gain, total_count = sum(gains.values()), sum(context_counts.values())
    return {
        # The uniform part is by contexts: a large cell has many of them.
        cell: UNIFORM_SHARE * count / total_count + (1 - UNIFORM_SHARE) * gains[cell] / total_gain
        for cell, count in context_counts.items()
    }


def draw_context(
    context_counts: Mapping[str, int], evidence: Mapping[str, CellEvidence]
) -> ContextDraw:
    """Draw a cell, then one of its contexts, each with the same probability.

    Raises ValueError without contexts. context_counts, evidence: see `compute_cell_probabilities`.
    """
    if not context_counts:
        raise ValueError("There is no context to draw.")
    probabilities = compute_cell_probabilities(context_counts, evidence)
    cell = random.choices(list(probabilities), list(probabilities.values()))[0]
    count = context_counts[cell]
    return ContextDraw(
        cell, random.randrange(count), probabilities[cell] / count, sum(context_counts.values())
    )

"""The rule for whether progress has stalled, by each round's vMER, the one before and noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from validation.rates.rates import Rate, compute_newcombe_interval


class Progress(StrEnum):
    """The conclusion about a target's progress that a round allows."""

    FIRST = "first"  # there is nothing to compare it with
    BETTER = "better"
    STALLED = "stalled"  # is fooled as often as the previous model, or nearly
    UNCLEAR = "unclear"  # too few examples to tell whether it is fooled less often
    WORSE = "worse"
    NOISE = "noise"  # as many labels may be wrong as examples fooled the model
    UNKNOWN = "unknown"  # a vMER is missing


NOTABLE_IMPROVEMENT = 0.1
"""A round counts as stalled only if a fall of its vMER by this much is ruled out."""


@dataclass(frozen=True)
class RoundStep:
    """A round compared with the previous one. improvement: the fall in vMER with a 95% interval."""

    progress: Progress
    improvement: float | None = None
    low: float | None = None
    high: float | None = None


def compare_rounds(vmers: Sequence[Rate | None], noises: Sequence[float | None]) -> list[RoundStep]:
    """Compare each round's vMER with the one before and with the share of dubious labels.

    Parameters
    ----------
    vmers : sequence of Rate or None
        The vMER of each round in order; None if it is unknown.
    noises : sequence of float or None
        For each round, the share of its examples whose label may be wrong.

    Notes
    -----
    A round has stalled if the interval of the improvement covers 0 and rules out
    NOTABLE_IMPROVEMENT, or if the noise reaches the vMER: the remaining catches may then be
    mislabels (Shirali, Abebe and Hardt 2023: rounds in one line can stall after three). The
    interval combines the intervals of both rounds by Newcombe's method 10 (1998), because rounds
    are collected independently.
    """
    steps: list[RoundStep] = []
    for previous_vmer, vmer, noise in zip([None, *vmers], vmers, noises, strict=False):
        if vmer is None:
            steps.append(RoundStep(Progress.UNKNOWN))
            continue
        gain = low = high = None
        # A later round without an earlier vMER cannot be compared.
        progress = Progress.UNKNOWN if steps else Progress.FIRST
        if previous_vmer is not None:
            gain = previous_vmer.value - vmer.value
            low, high = compute_newcombe_interval(previous_vmer, vmer)
            progress = _classify_change(low, high)
        # As many labels may be wrong as examples fooled the model, so that shows nothing.
        if noise is not None and noise >= vmer.value:
            progress = Progress.NOISE
        steps.append(RoundStep(progress, gain, low, high))
    return steps


def _classify_change(low: float, high: float) -> Progress:
    """Return the conclusion that the interval of an improvement allows."""
    if low > 0:
        return Progress.BETTER
    if high < 0:
        return Progress.WORSE
    return Progress.STALLED if high < NOTABLE_IMPROVEMENT else Progress.UNCLEAR

"""Split a fall from one round to the next: are the examples harder, or the models different? Pure.

The models of two rounds differ, so the change of their mean says little about the examples. The
ruler says what each model would score on the round that it didn't run. So the change splits into
one part for the same models on other examples, and one for other models (Kitagawa 1955, with the
symmetric weights of the two groups).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

NORMAL_QUANTILE = 1.96
"""The number of standard errors in half a 95% interval."""
MIN_MODELS = 3
"""The fewest models of each round: a mean of two is hardly a mean."""


@dataclass(frozen=True)
class PlacedScore:
    """A model's score (0-1) on a round.

    half_width: half of the 95 % interval if it is expected; 0 if it was measured.
    """

    value: float
    half_width: float = 0.0

    @property
    def is_measured(self) -> bool:
        """Return whether the model ran the round."""
        return not self.half_width


@dataclass(frozen=True)
class SplitFall:
    """A fall (0-1) of the models' mean from an earlier round to a later one, in two parts.

    fall: of the plain means. harder, with its 95 % interval: the part that the same models would
    lose. others: the part that comes from other models. fall = harder + others.
    """

    fall: float
    harder: float
    low: float
    high: float
    others: float
    both_count: int  # models that ran both rounds


def split_fall(
    earlier: Sequence[PlacedScore],
    later: Sequence[PlacedScore],
    item_errors: tuple[float, float],
) -> SplitFall | None:
    """Return the fall in two parts; None if fewer than MIN_MODELS ran either round.

    Parameters
    ----------
    earlier, later
        The scores of the same models, in the same order, on both rounds.
    item_errors
        For each round the standard error (0-1) of the models' mean that its examples cause.

    Notes
    -----
    With the mean expected change d(M) of a group M of models, harder = (d(models of the earlier
    round) + d(models of the later round)) ÷ 2. Its variance is that of both samples of examples
    and of the expected scores, whose errors count as if they were the same for all models: the
    interval is then rather too wide.
    """
    pairs = list(zip(earlier, later, strict=True))
    groups = (
        [pair for pair in pairs if pair[0].is_measured],
        [pair for pair in pairs if pair[1].is_measured],
    )
    if min(map(len, groups)) < MIN_MODELS:
        return None
    means = [
        sum(pair[side].value for pair in group) / len(group) for side, group in enumerate(groups)
    ]
    changes, half_widths = [], []
    for group in groups:
        changes.append(sum(first.value - last.value for first, last in group) / len(group))
        # At most one of the two is expected, because each group has run its own round.
        reach = sum(first.half_width + last.half_width for first, last in group)
        half_widths.append(reach / len(group))
    # Half of each group's change: neither the earlier nor the later models are the right ones.
    fall, harder = means[0] - means[1], sum(changes) / 2
    expected_error = sum(half_widths) / 2 / NORMAL_QUANTILE
    error = sqrt(sum(error**2 for error in item_errors) + expected_error**2)
    return SplitFall(
        fall,
        harder,
        harder - NORMAL_QUANTILE * error,
        harder + NORMAL_QUANTILE * error,
        fall - harder,
        len([pair for pair in pairs if pair[0].is_measured and pair[1].is_measured]),
    )

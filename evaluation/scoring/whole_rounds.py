"""Estimate a model's score on a whole round of which people judged a random sample. Pure.

The round's test set has the examples that people confirmed. Where a judge model was sure, people
were asked about few, so these are too few in the set. Weighted by one over the chance, the set
tells of what people would have confirmed if they had judged everything.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from validation.rates.assisted_rates import (
    MIN_AUTHORS,
    MIN_VOTED_EXAMPLES,
    AssistedExample,
    AssistedRate,
    RatioTerm,
    compute_assisted_ratio,
)
from validation.rates.sampled_counts import NEUTRAL_SCORE


class RoundTry(NamedTuple):
    """An example of the round, whether or not it is in the set.

    author: None if unknown. judge_score: what the judge model says (0-1); None if it said nothing.
    chance, is_asked, is_to_judge: as of `validation.statistics.samples.Asked`. is_right: whether
    the model answered it rightly; None if the example isn't in the set.
    """

    author: int | None
    judge_score: float | None
    chance: float
    is_asked: bool
    is_to_judge: bool
    is_right: bool | None


def estimate_whole_round(tries: Sequence[RoundTry]) -> AssistedRate | None:
    """Return the share of right answers on the set that the fully judged round would give.

    None if fewer than `MIN_VOTED_EXAMPLES` examples of the set were drawn, or those of fewer than
    `MIN_AUTHORS`.

    Notes
    -----
    The ratio estimator of `compute_assisted_ratio`: the numerator of an example is whether it is in
    the set and answered rightly, the denominator whether it is in the set. The bias is of the order
    of one over the judged examples, whatever the judge's errors.
    """
    counting = [one for one in tries if one.is_asked and one.is_right is not None]
    if len(counting) < MIN_VOTED_EXAMPLES or len({one.author for one in counting}) < MIN_AUTHORS:
        return None
    examples: list[AssistedExample] = []
    terms: list[RatioTerm] = []
    for number, one in enumerate(tries):
        # Any two unknown authors may be different people.
        author: Hashable = ("unknown", number) if one.author is None else one.author
        score = NEUTRAL_SCORE if one.judge_score is None else one.judge_score
        examples.append(AssistedExample(author, score, None, one.chance))
        if one.is_asked or not one.is_to_judge:
            # What nobody is asked about is in no set, so this is known without votes.
            size = float(one.is_right is not None)
            terms.append(RatioTerm(float(bool(one.is_right)), size, not one.is_to_judge))
        else:
            # Also if the owner confirmed it: owners choose, so it is no part of the sample.
            terms.append(RatioTerm(None, None))
    return compute_assisted_ratio(examples, terms)

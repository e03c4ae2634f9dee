"""What people found in a random sample of a round, and the rates of the whole round. Pure."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.text.words import gettext_noop
from validation.rates.rates import Rate, Undefined

JUDGE_METHOD = "judge-model"
"""The method of a rate that was estimated with the help of a judge model."""
NEUTRAL_SCORE = 0.5
"""Stands for what a judge says where it was never asked."""
TOO_FEW_REASON = gettext_noop(
    "not enough data yet: people judged fewer than 10 examples, or those of fewer than 3 authors"
)
ONLY_SAMPLE_REASON = gettext_noop("people judge only a sample, drawn with unequal chances")


class SampledExample(NamedTuple):
    """One example of a round of which people judge a sample.

    author: None if unknown. judge_score: what the judge says (0-1); None if it wasn't asked or gave
    no answer. chance: of being drawn. is_asked: whether people were asked, or would have been
    without a draw. can_be_catch: False if the model was right, so that it is no catch whatever
    people say. is_to_judge: False if nobody would be asked even without a draw. weight: of its
    context, as in `round_counts.Part`. The others are what people found: 0 until they vote.
    """

    author: int | None
    judge_score: float | None
    chance: float
    is_asked: bool
    can_be_catch: bool
    is_to_judge: bool
    weight: float
    catches: bool = False
    decided: bool = False
    judged: bool = False
    unanimous: bool = False
    votes: int = 0
    human: int = 0
    model: int = 0


@dataclass
class SampledCounts:
    """The examples of a round, of a part of it, or of several rounds.

    is_sampled: whether any example wasn't drawn. Otherwise the plain rates are complete.
    """

    examples: list[SampledExample] = field(default_factory=list)
    is_sampled: bool = False

    def __iadd__(self, other: "SampledCounts") -> "SampledCounts":
        self.examples += other.examples
        self.is_sampled = self.is_sampled or other.is_sampled
        return self


Pair = Callable[[SampledExample], tuple[float, float]]
# The same numerators and denominators as those of the plain rates.
RATIOS: Mapping[str, Pair] = {
    "vmer": lambda one: (one.weight * one.catches, one.weight),
    "fooled_of_decided": lambda one: (one.weight * one.catches, one.weight * one.decided),
    "majority_share": lambda one: (one.decided, one.judged),
    "unanimous_share": lambda one: (one.unanimous, one.judged),
    "human_accuracy": lambda one: (one.human, one.votes),
    "model_accuracy": lambda one: (one.model, one.votes),
    "human_model_gap": lambda one: (one.human - one.model, one.votes),
}
AGREEMENT_NAMES = ("fleiss_kappa", "krippendorff_alpha")


def estimate_rates(counts: SampledCounts, names: Sequence[str]) -> dict[str, Rate | Undefined]:
    """Return these rates of all examples, estimated from those that people judged.

    names: of RATIOS. A rate's n is the number of examples that people judged.
    """
    # Imported on use, because it loads numpy, and few rounds are sampled.
    from validation.rates.assisted_rates import AssistedExample, RatioTerm, compute_assisted_ratio

    examples: list[AssistedExample] = []
    for number, one in enumerate(counts.examples):
        # Any two unknown authors may be different people.
        author: Hashable = ("unknown", number) if one.author is None else one.author
        score = NEUTRAL_SCORE if one.judge_score is None else one.judge_score
        examples.append(AssistedExample(author, score, None, one.chance))
    judged_count = sum(one.is_asked and one.judged for one in counts.examples)
    rates: dict[str, Rate | Undefined] = {}
    for name in names:
        get_pair = RATIOS[name]
        terms = []
        for one in counts.examples:
            # Nobody needs to be asked whether these are catches, or votes on them.
            is_known = not (one.can_be_catch if name == "vmer" else one.is_to_judge)
            if one.is_asked or is_known:
                numerator, size = get_pair(one)
                terms.append(RatioTerm(numerator, size, is_known))
            else:
                terms.append(RatioTerm(None, None))
        lowest = -1.0 if name == "human_model_gap" else 0.0
        estimate = compute_assisted_ratio(examples, terms, lowest)
        if estimate is None:
            rates[name] = Undefined(TOO_FEW_REASON)
        else:
            rates[name] = Rate(
                estimate.value, estimate.low, estimate.high, judged_count, JUDGE_METHOD
            )
    return rates


def count_drawn(counts: SampledCounts) -> tuple[int, int]:
    """Return how many examples people are asked about, and how many the draw left out."""
    to_judge = [one.is_asked for one in counts.examples if one.is_to_judge]
    return sum(to_judge), len(to_judge) - sum(to_judge)

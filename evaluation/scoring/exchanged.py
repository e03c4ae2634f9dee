"""Detect whether a model's labels look exchanged: renaming its answers would make them right. Pure.

A wrong order of labels costs nearly every point and raises no error. Three conditions together make
the finding, so that neither chance nor a poor model does:

- Renaming the answers by one permutation makes at least 10 points more of them right.
- That gain is sure: of the answers that are right under one naming only, as many are so by chance
  with a probability of at most 0.001, divided by the number of permutations that could have been
  chosen (McNemar's test with Bonferroni's correction; the tail is bounded by Chernoff's
  inequality, so it is smaller still).
- The renamed answers agree with the right ones beyond chance (Cohen's kappa of 0.3), and surely: a
  model that says one label for everything is only poor.
- As it is named, it agrees less than chance would.

Examples with several right answers, and answers that are no label, do not count.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import lgamma, log, sqrt
from typing import Any

from core.text.words import gettext_noop

EXCHANGED_WARNING = gettext_noop(
    "The labels look exchanged: with other names for its answers the model would be right far more "
    "often. Compare `labels` in dynabench.json, or `id2label` in config.json, with the order that "
    "it was trained with, and submit it again. The score stands. A model that the examples were "
    "written to fool may look so, too."
)
MIN_GAIN_SHARE = 0.1
MIN_KAPPA = 0.3
MAX_ERROR_PROBABILITY = 0.001
MIN_STANDARD_ERRORS = 3.72  # standard errors above what is expected; by chance one model in 10,000


@dataclass
class LabelCounts:
    """Counts of pairs of right label and answered label, updated one example at a time."""

    labels: Sequence[str]
    _pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, gold: Sequence[Any], answer: Any) -> None:
        """Count an example.

        Skip it unless it has exactly one right label and the answer is a label.
        """
        if len(gold) == 1 and gold[0] in self.labels and answer in self.labels:
            self._pairs[gold[0], answer] += 1

    def exchanged(self) -> dict[str, str]:
        """Map each label that looks exchanged to the label that it seems to mean.

        The mapping is empty if the labels look right.
        """
        new_names = self._best_names()
        looks_so = self._is_sure_gain(new_names) and self._agrees_beyond_chance(new_names)
        if not looks_so:
            return {}
        return {answer: meant for answer, meant in new_names.items() if answer != meant}

    def _best_names(self) -> dict[str, str]:
        """Return the permutation of labels under which most answers are right.

        Starts from the labels as they are and exchanges two as long as this improves the count.
        With many labels, the result may be slightly below the best.
        """
        names = dict(zip(self.labels, self.labels, strict=True))
        has_gained = True
        # It ends, because each exchange makes at least one answer more right.
        while has_gained:
            has_gained = False
            for label, other in combinations(self.labels, 2):
                if self._exchange_gain(names, label, other) > 0:
                    names[label], names[other] = names[other], names[label]
                    has_gained = True
        return names

    def _exchange_gain(self, names: Mapping[str, str], label: str, other: str) -> int:
        """Return how many more answers are right after two labels exchange their names."""
        before = self._pairs[names[label], label] + self._pairs[names[other], other]
        return self._pairs[names[other], label] + self._pairs[names[label], other] - before

    def _is_sure_gain(self, new_names: Mapping[str, str]) -> bool:
        gain_count = loss_count = 0
        for label in self.labels:
            if new_names[label] != label:
                gain_count += self._pairs[new_names[label], label]
                loss_count += self._pairs[label, label]
        # A gain of a few points may be sure on a large set, but is no exchange of labels.
        if gain_count - loss_count < MIN_GAIN_SHARE * max(1, self._pairs.total()):
            return False
        # Bonferroni: all n! permutations share it. In logarithms, since 0.001 ÷ 200! is 0.
        log_permutations = lgamma(len(self.labels) + 1)
        return _tail_exponent(gain_count, loss_count) >= log_permutations - log(
            MAX_ERROR_PROBABILITY
        )

    def _agrees_beyond_chance(self, names: Mapping[str, str]) -> bool:
        """Return whether the renamed answers are right clearly more often than by chance."""
        total = self._pairs.total()
        gold_counts, answer_counts = Counter[str](), Counter[str]()
        for (gold, answer), count in self._pairs.items():
            gold_counts[gold] += count
            answer_counts[answer] += count
        right_count = expected_count = 0
        for answer, meant in names.items():
            right_count += self._pairs[meant, answer]
            expected_count += gold_counts[meant] * answer_counts[answer]
        right_share, expected_share = right_count / total, expected_count / total**2
        # The standard error of the share that chance alone would get right.
        error = sqrt(expected_share * (1 - expected_share) / total)
        is_kappa_high = right_share - expected_share >= MIN_KAPPA * (1 - expected_share)
        return is_kappa_high and right_share > expected_share + MIN_STANDARD_ERRORS * error


def _tail_exponent(gain_count: int, loss_count: int) -> float:
    """Return −log of an upper bound on the probability that fair coin flips are this uneven.

    gained: the larger count, lost: the smaller one. The bound is Chernoff's:
    total · (log 2 − entropy of the shares).
    """
    total = gain_count + loss_count
    shares = [count / total for count in (gain_count, loss_count) if count]
    return total * (log(2) + sum(share * log(share) for share in shares))


def make_exchanged_warnings(meaning_by_label: Mapping[str, str]) -> tuple[str, ...]:
    """Return the warnings to show with the result: the finding, then which label means which."""
    if not meaning_by_label:
        return ()
    pairs = ", ".join(f"{answer} → {meant}" for answer, meant in meaning_by_label.items())
    return (EXCHANGED_WARNING, f"Said → meant: {pairs}")

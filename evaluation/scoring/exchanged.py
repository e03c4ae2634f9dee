"""Detect whether a model's labels look exchanged: renaming its answers would make them right. Pure.

A wrong order of labels costs nearly every point and raises no error. Three conditions must all be
met, so that neither chance nor a poor model is mistaken for an exchange:

- Renaming the answers by one permutation makes at least 10 points more of them right.
- This gain is significant by McNemar's test on the answers that are right under only one of the two
  namings. Its p-value, bounded by Chernoff's inequality, is at most 0.001. This is divided by the
  number of permutations that could have been chosen (Bonferroni's correction).
- The renamed answers agree with the right ones significantly, with a Cohen's kappa of at least 0.3:
  a model that gives one label for everything is only poor.

Examples with several right answers, and answers that are not a label, do not count.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import lgamma, log, sqrt
from typing import Any

from core.text.words import gettext_noop

EXCHANGED_WARNING = gettext_noop(
    "The labels look swapped: with other label names, the model would be "
    "right far more often. Compare `labels` in dynabench.json, or `id2label` "
    "in config.json, with the order used in training. Then submit the model "
    "again. This score doesn't change. Ignore this warning if the examples "
    "were written to fool this model."
)
MIN_GAIN_SHARE = 0.1
MIN_KAPPA = 0.3
MAX_ERROR_PROBABILITY = 0.001
MIN_STANDARD_ERRORS = 3.72  # standard errors above the expectation; by chance, one model in 10,000


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

    def find_exchanged_labels(self) -> dict[str, str]:
        """Map each label that looks exchanged to the label that it seems to mean.

        The mapping is empty if the labels look right.
        """
        new_names = self._find_best_names()
        is_exchanged = self._is_gain_significant(new_names) and self._is_agreement_beyond_chance(
            new_names
        )
        if not is_exchanged:
            return {}
        return {
            answer: meant_label
            for answer, meant_label in new_names.items()
            if answer != meant_label
        }

    def _find_best_names(self) -> dict[str, str]:
        """Return the permutation of labels under which most answers are right.

        Starts from the labels as they are and exchanges two as long as this improves the count.
        With many labels, the result may be slightly below the best.
        """
        names = dict(zip(self.labels, self.labels, strict=True))
        has_gained = True
        # Terminates, because each exchange increases the number of right answers.
        while has_gained:
            has_gained = False
            for label, other_label in combinations(self.labels, 2):
                if self._compute_exchange_gain(names, label, other_label) > 0:
                    names[label], names[other_label] = names[other_label], names[label]
                    has_gained = True
        return names

    def _compute_exchange_gain(self, names: Mapping[str, str], label: str, other_label: str) -> int:
        """Return how many more answers are right after two labels exchange their names."""
        # Only answers with these two labels are affected.
        count_before = (
            self._pairs[names[label], label] + self._pairs[names[other_label], other_label]
        )
        return (
            self._pairs[names[other_label], label]
            + self._pairs[names[label], other_label]
            - count_before
        )

    def _is_gain_significant(self, new_names: Mapping[str, str]) -> bool:
        gain_count = loss_count = 0
        for label in self.labels:
            if new_names[label] != label:
                gain_count += self._pairs[new_names[label], label]
                loss_count += self._pairs[label, label]
        # A gain of a few points may be significant on a large set, but is not an exchange.
        if gain_count - loss_count < MIN_GAIN_SHARE * max(1, self._pairs.total()):
            return False
        # Bonferroni over all n! permutations. In logarithms, because 0.001 ÷ 200! is 0.
        log_permutations = lgamma(len(self.labels) + 1)
        return _compute_tail_exponent(gain_count, loss_count) >= log_permutations - log(
            MAX_ERROR_PROBABILITY
        )

    def _is_agreement_beyond_chance(self, names: Mapping[str, str]) -> bool:
        """Return whether the renamed answers are right clearly more often than by chance."""
        total = self._pairs.total()
        gold_counts, answer_counts = Counter[str](), Counter[str]()
        for (gold, answer), count in self._pairs.items():
            gold_counts[gold] += count
            answer_counts[answer] += count
        right_count = expected_count = 0
        for answer, meant_label in names.items():
            right_count += self._pairs[meant_label, answer]
            expected_count += gold_counts[meant_label] * answer_counts[answer]
        right_share, expected_share = right_count / total, expected_count / total**2
        # The standard error of the share of right answers by chance.
        standard_error = sqrt(expected_share * (1 - expected_share) / total)
        is_kappa_high = right_share - expected_share >= MIN_KAPPA * (1 - expected_share)
        return is_kappa_high and right_share > expected_share + MIN_STANDARD_ERRORS * standard_error


def _compute_tail_exponent(gain_count: int, loss_count: int) -> float:
    """Return −log of an upper bound on the probability that fair coin flips are this uneven.

    gain_count: the larger count. loss_count: the smaller one. The bound is Chernoff's:
    total · (log 2 − entropy of the shares).
    """
    total = gain_count + loss_count
    shares = [count / total for count in (gain_count, loss_count) if count]
    return total * (log(2) + sum(share * log(share) for share in shares))


def make_exchanged_warnings(meaning_by_label: Mapping[str, str]) -> tuple[str, ...]:
    """Return the warnings to show with the result: the finding, then which label means which."""
    if not meaning_by_label:
        return ()
    pairs = ", ".join(
        f"{answer} → {meant_label}" for answer, meant_label in meaning_by_label.items()
    )
    return (EXCHANGED_WARNING, f"Said → meant: {pairs}")

"""Whether a model's labels look exchanged: other names for its answers would make them right. Pure.

A wrong order of labels costs nearly every point and raises no error. Three conditions together make
the finding, so that neither chance nor a poor model does:

- Renaming the answers by one permutation makes at least 10 points more of them right.
- That gain is sure: of the answers that are right under one naming alone, as many are so by chance
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
from math import lgamma, log, sqrt
from typing import Any

from core.text.words import gettext_noop

EXCHANGED = gettext_noop(
    "The labels look exchanged: with other names for its answers the model would be right far more "
    "often. Compare `labels` in dynabench.json, or `id2label` in config.json, with the order that "
    "it was trained with, and submit it again. The score stands. A model that the examples were "
    "written to fool may look so, too."
)
LEAST_GAIN = 0.1
LEAST_KAPPA = 0.3
CHANCE = 0.001
SURE = 3.72  # standard errors above what is expected; by chance one model in 10,000


@dataclass
class LabelCounts:
    """How often each label was said where each was right, counted as the answers come."""

    labels: Sequence[str]
    _pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, gold: Sequence[Any], said: Any) -> None:
        """Count an example; what has no single label on both sides is passed over."""
        if len(gold) == 1 and gold[0] in self.labels and said in self.labels:
            self._pairs[gold[0], said] += 1

    def exchanged(self) -> dict[str, str]:
        """Return the label that each exchanged one seems to stand for; empty: they look right."""
        renamed = self._best_names()
        looks_so = self._is_sure_gain(renamed) and self._agrees_beyond_chance(renamed)
        changed = {said: meant for said, meant in renamed.items() if said != meant}
        return changed if looks_so else {}

    def _best_names(self) -> dict[str, str]:
        """The permutation of labels under which answers are right most often.

        It starts from the names as they are and exchanges two as long as that gains anything, so
        of many labels it may be a little less than the best.
        """
        names = {label: label for label in self.labels}
        has_gained = True
        while has_gained:
            has_gained = False
            for number, one in enumerate(self.labels):
                for other in self.labels[number + 1 :]:
                    gain = self._exchange_gain(names, one, other)
                    if gain > 0:
                        names[one], names[other] = names[other], names[one]
                        has_gained = True
        return names

    def _exchange_gain(self, names: Mapping[str, str], one: str, other: str) -> int:
        before = self._pairs[names[one], one] + self._pairs[names[other], other]
        return self._pairs[names[other], one] + self._pairs[names[one], other] - before

    def _is_sure_gain(self, renamed: Mapping[str, str]) -> bool:
        moved = [label for label in self.labels if renamed[label] != label]
        gained = sum(self._pairs[renamed[label], label] for label in moved)
        lost = sum(self._pairs[label, label] for label in moved)
        if gained - lost < LEAST_GAIN * max(1, self._pairs.total()):
            return False
        permutations = lgamma(len(self.labels) + 1)
        return _tail_exponent(gained, lost) >= permutations - log(CHANCE)

    def _agrees_beyond_chance(self, names: Mapping[str, str]) -> bool:
        """Whether answers under these names agree with the right ones more than the same labels
        would that were dealt out by chance."""
        total = self._pairs.total()
        golds, saids = Counter[str](), Counter[str]()
        for (gold, said), count in self._pairs.items():
            golds[gold] += count
            saids[said] += count
        right = sum(self._pairs[meant, said] for said, meant in names.items()) / total
        expected = sum(golds[meant] * saids[said] for said, meant in names.items()) / total**2
        error = sqrt(expected * (1 - expected) / total)
        is_kappa_high = right - expected >= LEAST_KAPPA * (1 - expected)
        return is_kappa_high and right > expected + SURE * error


def _tail_exponent(gained: int, lost: int) -> float:
    """Minus the logarithm of a bound on the chance that a fair coin falls so unevenly.

    gained: more than lost.
    """
    total = gained + lost
    shares = [count / total for count in (gained, lost) if count]
    return total * (log(2) + sum(share * log(share) for share in shares))


def exchanged_warnings(exchanged: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sentences for who reads the result: that it looks so, and which label is which."""
    if not exchanged:
        return ()
    pairs = ", ".join(f"{said} → {meant}" for said, meant in exchanged.items())
    return (EXCHANGED, f"Said → meant: {pairs}")

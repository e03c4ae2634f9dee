"""What somebody learns of secret labels from few rounded scores: questions, guesses, bits. Pure.

There are two equally frequent labels, 0 and 1, independent of each other. A question is the answers
of a model. Its accuracy tells how far the question lies from the labels; the best guess after
several results follows the questions that scored above a half, and turns those below round.
"""

from collections import Counter
from collections.abc import Sequence
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.test_sets.sealing import Disclosure, count_steps

Labels = NDArray[np.int8]
DRAW_COUNT = 4000
"""Label vectors that estimate an entropy, to a tenth of a bit."""


class Guesser:
    """Asks questions about `size` labels and guesses these from the accuracies that are shown."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size, self._rng = size, rng
        self._questions: list[NDArray[np.float64]] = []  # of -1 and 1
        self._results: list[float] = []  # of -1, all wrong, to 1

    def next_question(self) -> Labels:
        """Return answers that differ from each earlier question in half of the examples.

        Such a result tells what the earlier ones do not.
        """
        drawn = self._rng.standard_normal(self.size)
        for question in self._questions:
            drawn -= question * (question @ drawn) / self.size
        middle = np.median(drawn)
        return (drawn > middle).astype(np.int8)

    def learn(self, question: Labels, accuracy: float) -> None:
        """Take in the accuracy that was shown of a question."""
        self._questions.append(2.0 * question - 1)
        self._results.append(2 * accuracy - 1)

    def guess(self) -> Labels:
        """Return the most probable labels: the sign of the least-squares fit to all results."""
        if not self._questions:
            return self._rng.integers(0, 2, self.size, dtype=np.int8)
        questions, results = np.array(self._questions), np.array(self._results) * self.size
        overlaps = questions @ questions.T + self.size / 12 * np.eye(len(results))  # of rounding
        mean = questions.T @ np.linalg.solve(overlaps, results)
        return (mean > 0).astype(np.int8)


def calculate_right_share(guess: Labels, labels: Labels) -> float:
    """Return the share of labels that a guess has right."""
    return float(np.mean(guess == labels))


def compute_share_bits(share: float, size: int) -> float:
    """Return the bits that it takes to have this share of labels right: n · (1 − H(share)).

    Shannon's rate-distortion function; a share below a half takes none.
    """
    if share <= 0.5:
        return 0.0
    if share >= 1:
        return float(size)
    return size * (1 + share * log2(share) + (1 - share) * log2(1 - share))


def compute_result_bits(
    question: Labels, rng: np.random.Generator, draws: int = DRAW_COUNT
) -> float:
    """Return the entropy of the result that a question is shown: rounded accuracy and macro F1.

    It is the most that the result can tell of the labels, as these decide it.
    """
    labels = rng.integers(0, 2, (draws, len(question)), dtype=np.int8)
    steps = count_steps(len(question))
    accuracy = np.mean(labels == question, axis=1)
    scores = np.stack([accuracy, _compute_macro_f1(labels, question)], axis=1)
    counts = Counter(map(tuple, np.rint(scores * steps).astype(int).tolist()))
    shares = np.array([*counts.values()]) / draws
    return float(-(shares * np.log2(shares)).sum())


def compute_max_result_bits(size: int, rng: np.random.Generator) -> float:
    """Return the entropy of a result for the best question that is known.

    One that gives one label seldom tells more: its macro F1 is then no repetition of its accuracy.
    """
    shares = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
    questions = ((np.arange(size) < share * size).astype(np.int8) for share in shares)
    return max(compute_result_bits(question, rng) for question in questions)


def _compute_macro_f1(labels: NDArray[np.int8], question: Labels) -> NDArray[np.float64]:
    means = []
    for value in (0, 1):
        is_right, is_said = labels == value, question == value
        both = (is_right & is_said).sum(axis=1)
        means.append(2 * both / (is_right.sum(axis=1) + is_said.sum()))
    return np.mean(means, axis=0)


def list_stated_bounds(sizes: Sequence[int], metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Return the table of docs/evaluation.md, by the site's own rule and from its definition.

    Raises ValueError where the rule allows more than a quarter of a bit an example and result.
    """
    rows = []
    for size in sizes:
        shown, steps = Disclosure(size, metrics), int(2 * size**0.5)
        bits = len(metrics) * log2(steps + 2)
        results = max(1, int(size / 4 / bits))
        if shown.max_results != results or abs(shown.max_bits - results * bits) > 1e-9:
            raise ValueError(f"The bound for {size} examples is not what the documents say.")
        step = round(1 / steps, 3)
        rows.append({"examples": size, "step": step, "results": results, "bits": results * bits})
    return rows

"""What a language model has tried and found, by strategy and topic, and where to look next.

After Samvelyan et al. 2024, “Rainbow Teaming”: an archive of cells to fill, and a short memory of
what worked.
"""

import re
from collections import Counter, deque
from collections.abc import Sequence
from itertools import product
from random import Random
from typing import NamedTuple

from annotation.rules.near_duplicates import compute_overlap
from core.text.words import split_runs

COPY_SHARE = 0.8
"""From this share of words in common (Jaccard's index), a text counts as a copy."""
MAX_REMEMBERED = 500
"""The number of latest texts with which a new one is compared."""
MAX_SHOWN = 3
"""The number of finds that the writing model reads with a request."""
FENCE_PATTERN = re.compile(r"^```\w*\s*|\s*```$")
QUOTES = "\"'“”‘’«»„`"


class Cell(NamedTuple):
    """A combination of a way to mislead a model and of something to write about."""

    strategy: str
    topic: str

    def __str__(self) -> str:
        return f"{self.strategy} · {self.topic}" if self.topic else self.strategy


class Archive:
    """The cells of a run with what was tried and found in each.

    Everything follows from the seed and from the order of the calls, so that a run that continues
    comes to the same archive.
    """

    def __init__(self, strategies: Sequence[str], topics: Sequence[str], rng: Random) -> None:
        self._cells = [Cell(*pair) for pair in product(strategies, topics or ("",))]
        # Else every run would begin with the same strategy.
        rng.shuffle(self._cells)
        self._visits: Counter[Cell] = Counter()
        self._finds: list[tuple[str, Cell, str]] = []
        self._recent_words: deque[frozenset[str]] = deque(maxlen=MAX_REMEMBERED)

    def choose_cell(self) -> Cell:
        """Return the next cell: without a find before others, then the least visited one."""
        # One find in each cell teaches more than many in one.
        filled_cells = {cell for _label, cell, _text in self._finds}
        cell = min(self._cells, key=lambda one: (one in filled_cells, self._visits[one]))
        self._visits[cell] += 1
        return cell

    def is_copy(self, text: str) -> bool:
        """Return whether nearly the same words were asked about already."""
        words = _collect_words(text)
        # Two texts without words are copies, too.
        return any(
            words == other_words or compute_overlap(words, other_words) >= COPY_SHARE
            for other_words in self._recent_words
        )

    def remember_text(self, text: str) -> None:
        """Keep a text, so that later ones differ from it."""
        self._recent_words.append(_collect_words(text))

    def add_find(self, label: str, cell: Cell, text: str) -> None:
        """Keep a text that fooled the models, as an example for later requests."""
        self._finds.append((label, cell, text))

    def list_examples(self, label: str, cell: Cell) -> list[str]:
        """Return finds to show with a request, at most MAX_SHOWN, the latest first.

        Those of the same label come first, and of these the ones of the same strategy.
        """
        # The sort is stable, so the latest stay first among equals.
        latest_finds = self._finds[::-1]
        ranked_finds = sorted(
            latest_finds,
            key=lambda find: (find[0] != label, find[1].strategy != cell.strategy),
        )
        return [f"{found_label}: {text}" for found_label, _cell, text in ranked_finds[:MAX_SHOWN]]


def clean_reply(text: str) -> str:
    """Return a language model's reply as one line, without a code fence and outer quotes.

    >>> clean_reply('"We loved\\nthe tour."')
    'We loved the tour.'
    """
    plain_text = " ".join(FENCE_PATTERN.sub("", text.strip()).split())
    while len(plain_text) > 1 and plain_text[0] in QUOTES and plain_text[-1] in QUOTES:
        plain_text = plain_text[1:-1].strip()
    return plain_text


def _collect_words(text: str) -> frozenset[str]:
    return frozenset(split_runs(text.lower()))

"""How new each text of an arm is, compared with the earlier ones of the arm. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from annotation.rules.near_duplicates import (
    compute_band_keys,
    compute_overlap,
    get_compared_text,
    split_grams,
)
from dynabench.campaigns.rules.novelty import score_novelty
from tasks.config.schema import TaskConfig

Grams = frozenset[str]


def compute_novelty(
    config: TaskConfig, rows: Sequence[Mapping[str, Any]]
) -> dict[int, float | None]:
    """Return the novelty (0-1) of each text by its row's `pk`; None if it is too short.

    rows: with `pk` and `inputs`, oldest first. Only texts that share a signature are compared, so
    that the time grows with the number of texts.
    """
    novelty: dict[int, float | None] = {}
    grams_by_key: dict[int, set[Grams]] = defaultdict(set)
    for row in rows:
        text = get_compared_text(config, row["inputs"])
        keys, grams = compute_band_keys(text), frozenset(split_grams(text))
        # A short text may be the same by chance, so nothing is said about it.
        if not keys:
            novelty[row["pk"]] = None
            continue
        # Only texts that share a key can be near copies, so few are compared, and each once.
        candidates = set().union(*(grams_by_key[key] for key in keys))
        novelty[row["pk"]] = score_novelty(_find_likeness(grams, candidates))
        for key in keys:
            grams_by_key[key].add(grams)
    return novelty


def _find_likeness(grams: Grams, candidates: Iterable[Grams]) -> float:
    """Return how like the text is to the most similar one, 0 to 1; 0 without candidates."""
    likeness = 0.0
    for earlier_grams in candidates:
        likeness = max(likeness, compute_overlap(grams, earlier_grams))
        # Nothing is more alike than a copy.
        if likeness >= 1:
            break
    return likeness

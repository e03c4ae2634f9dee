"""How new each text of an arm is, compared with the earlier ones of the arm. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from annotation.rules.near_duplicates import (
    compute_band_keys,
    compute_overlap,
    get_compared_text,
    split_grams,
)
from dynabench.campaigns.rules.novelty import score_novelty
from tasks.config.schema import TaskConfig


def compute_novelty(
    config: TaskConfig, rows: Sequence[Mapping[str, Any]]
) -> dict[int, float | None]:
    """Return the novelty (0-1) of each text by its row's `pk`; None if it is too short.

    rows: with `pk` and `inputs`, oldest first. Only texts that share a signature are compared, so
    that the time grows with the number of texts.
    """
    novelty: dict[int, float | None] = {}
    grams_by_key: dict[int, list[set[str]]] = defaultdict(list)
    for row in rows:
        text = get_compared_text(config, row["inputs"])
        keys, grams = compute_band_keys(text), split_grams(text)
        # A short text may be the same by chance, so nothing is said about it.
        if not keys:
            novelty[row["pk"]] = None
            continue
        likeness = 0.0
        for key in keys:
            # Only texts that share a key can be near copies, so few are compared.
            for earlier_grams in grams_by_key[key]:
                likeness = max(likeness, compute_overlap(grams, earlier_grams))
        novelty[row["pk"]] = score_novelty(likeness)
        for key in keys:
            grams_by_key[key].append(grams)
    return novelty

"""Whether ratios got worse between two commits, from pairs of runs. Pure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Direction = Literal["higher", "lower"]
Run = Mapping[str, float]
"""The ratios of one run by name."""
LOSS = 0.2
"""A ratio is lost that is this share worse: a time of 1.25 times, or a rate of 0.8 times."""
PRODUCT_PATHS = (
    *(
        "annotation/",
        "core/",
        "dynabench/",
        "evaluation/",
        "leaderboard/",
        "serving/",
        "tasks/",
        "validation/",
    ),
    *("templates/", "requirements", "gunicorn.conf.py"),
)
"""How the paths of files begin that decide how fast the site is."""


@dataclass(frozen=True)
class ComparedRatio:
    """One ratio of both sides: medians, and how much is left of the kept one (1: all)."""

    name: str
    kept: float
    now: float
    left: float

    @property
    def is_lost(self) -> bool:
        """Tell whether a fifth or more is lost."""
        return self.left <= 1 - LOSS


def is_product_file(path: str) -> bool:
    """Tell whether a change of this file can change how fast the site is.

    >>> is_product_file("tasks/models.py"), is_product_file("tests/web/test_judge.py")
    (True, False)
    """
    return path.startswith(PRODUCT_PATHS)


def compute_remaining_share(kept: float, now: float, better: Direction) -> float:
    """Return how good a figure is compared with the kept one: 0.8 is a fifth lost.

    >>> left_of(10, 12.5, "lower"), left_of(10, 8, "higher"), left_of(0, 0, "lower")
    (0.8, 0.8, 1.0)
    """
    good, bad = (kept, now) if better == "lower" else (now, kept)
    if good == bad:
        return 1.0
    return good / bad if bad else float("inf")


def compare(
    pairs: Sequence[tuple[Run, Run]], better: Mapping[str, Direction]
) -> Iterator[ComparedRatio]:
    """Compare each ratio that both runs of every pair have, in the order of `better`.

    A pair is a run of the kept commit and one of now, made right after each other. What is left is
    the median over the pairs, so that one slow run decides nothing.
    """
    for name, direction in better.items():
        if not pairs or not all(name in run for pair in pairs for run in pair):
            continue
        lefts = [compute_remaining_share(kept[name], now[name], direction) for kept, now in pairs]
        yield ComparedRatio(
            name,
            kept=statistics.median(kept[name] for kept, _now in pairs),
            now=statistics.median(now[name] for _kept, now in pairs),
            left=statistics.median(lefts),
        )


def compute_median_run(runs: Sequence[Run]) -> dict[str, float]:
    """Return the median of each ratio that all runs have."""
    names = [name for name in runs[0] if all(name in run for run in runs)]
    return {name: statistics.median(run[name] for run in runs) for name in names}

"""Measure how far a language model that judges answers agrees with people. Pure."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Literal, NamedTuple

from validation.consensus.sampling import draw
from validation.rates.rates import Rate, clustered_rate

LEAST = 50
"""The fewest examples, judged by both, on which an agreement counts as a calibration."""
Part = Literal["tune", "calibrate"]


class Pair(NamedTuple):
    """One answer that people and the model judged. author: None where unknown."""

    author: Hashable | None
    by_people: bool
    by_model: bool


class Agreement(NamedTuple):
    """Cohen's kappa with its interval of 95 %, and the confusion; n examples of `authors`.

    kappa None: all say the same, or there is nothing. Counts: people first, then the model.
    """

    n: int
    authors: int
    both_correct: int
    only_people: int  # people say correct, the model incorrect
    only_model: int
    both_incorrect: int
    kappa: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def is_calibrated(self) -> bool:
        """Whether it rests on enough examples to be shown."""
        return self.n >= LEAST and self.low is not None


def part_of(task: int, author: Hashable, secret: str) -> Part:
    """Return whether an author's examples are to tune prompts on, or to calibrate judges on.

    Half and half by a keyed hash, so that nobody chooses it and it never changes.
    """
    return "calibrate" if draw(f"llm judges of {task}: {author}", secret) % 2 else "tune"


def agreement(pairs: Iterable[Pair]) -> Agreement:
    """Return Cohen's kappa (1960) of people and the model.

    Notes
    -----
    κ = (observed − chance) ÷ (1 − chance). The interval is that of the observed agreement,
    clustered by author as all rates are (Korn and Graubard 1998), carried over to kappa with the
    chance agreement as it was measured.
    """
    pairs = list(pairs)
    cells = Counter((pair.by_people, pair.by_model) for pair in pairs)
    both, people = cells[True, True], cells[True, False]
    model, neither = cells[False, True], cells[False, False]
    clusters = _clusters(pairs)
    counted = Agreement(len(pairs), len(clusters), both, people, model, neither)
    observed = clustered_rate(clusters)
    if not isinstance(observed, Rate):
        return counted
    n = len(pairs)
    chance = ((both + people) * (both + model) + (model + neither) * (people + neither)) / n**2
    if chance == 1:  # both always say the same: there is nothing to agree on
        return counted

    def beyond_chance(share: float) -> float:
        return max(-1.0, (share - chance) / (1 - chance))

    return counted._replace(
        kappa=beyond_chance(observed.value),
        low=beyond_chance(observed.low),
        high=beyond_chance(observed.high),
    )


def _clusters(pairs: Iterable[Pair]) -> list[tuple[float, int]]:
    """Return (agreements, examples) of each author; each unknown author is a cluster."""
    agreements: Counter[Hashable] = Counter()
    examples: Counter[Hashable] = Counter()
    for number, (author, by_people, by_model) in enumerate(pairs):
        # Answers of one author are alike, so they count as one cluster.
        cluster = ("unknown", number) if author is None else author
        agreements[cluster] += by_people == by_model
        examples[cluster] += 1
    return [(agreements[cluster], n) for cluster, n in examples.items()]

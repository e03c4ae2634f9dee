"""How far a language model that judges answers agrees with people. Pure."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Literal, NamedTuple

from validation.rules.rates import Rate, clustered_rate
from validation.rules.sampling import draw

LEAST = 50
"""Of fewer examples that both judged, no agreement is told as a calibration."""
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
        """Whether it rests on enough examples to be told."""
        return self.n >= LEAST and self.low is not None


def part_of(task: int, author: Hashable, secret: str) -> Part:
    """Whether an author's examples are to tune prompts on, or to calibrate judges on.

    Half and half by a keyed hash, so that nobody chooses it and it never changes.
    """
    return "calibrate" if draw(f"llm judges of {task}: {author}", secret) % 2 else "tune"


def agreement(pairs: Iterable[Pair]) -> Agreement:
    """Cohen's kappa (1960) of people and the model.

    The interval is that of the observed agreement, clustered by author as all rates are (Korn and
    Graubard 1998), carried over to kappa with the chance agreement as it was measured.
    """
    pairs = list(pairs)
    counts = [
        sum((pair.by_people, pair.by_model) == cell for pair in pairs)
        for cell in ((True, True), (True, False), (False, True), (False, False))
    ]
    clusters = _clusters(pairs)
    found = Agreement(len(pairs), len(clusters), *counts)
    observed = clustered_rate(clusters)
    if not isinstance(observed, Rate):
        return found
    n, (both, people, model, neither) = len(pairs), counts
    chance = ((both + people) * (both + model) + (model + neither) * (people + neither)) / n**2
    if chance == 1:
        return found
    kappa, low, high = (
        max(-1.0, (share - chance) / (1 - chance))
        for share in (observed.value, observed.low, observed.high)
    )
    return found._replace(kappa=kappa, low=low, high=high)


def _clusters(pairs: Iterable[Pair]) -> list[tuple[float, int]]:
    """(agreements, examples) of each author; one of an unknown author is a cluster by itself."""
    found: dict[Hashable, list[int]] = defaultdict(lambda: [0, 0])
    for number, (author, by_people, by_model) in enumerate(pairs):
        mine = found[("unknown", number) if author is None else author]
        mine[0] += by_people == by_model
        mine[1] += 1
    return [(agreed, n) for agreed, n in found.values()]

"""Measure how far a language model that judges answers agrees with people. Pure."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Literal, NamedTuple

from validation.consensus.sampling import draw
from validation.rates.rates import Rate, clustered_rate

LEAST_EXAMPLES = 50
"""The fewest examples, judged by both, on which an agreement counts as a calibration."""
Split = Literal["tune", "calibrate"]


class JudgedPair(NamedTuple):
    """An answer that both people and the model judged. author: None if unknown."""

    author: Hashable | None
    by_people: bool
    by_model: bool


class Agreement(NamedTuple):
    """Cohen's kappa with its 95 % interval and confusion counts.

    n: the number of examples, by `authors` authors. kappa: None if all judgements are equal or
    there are none.
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
        """Return whether the agreement is based on enough examples to be shown."""
        return self.n >= LEAST_EXAMPLES and self.low is not None


def assign_split(task: int, author: Hashable, secret: str) -> Split:
    """Return the part that an author's examples belong to: tuning prompts or calibrating judges.

    A keyed hash assigns about half of the authors to each part, so that nobody can choose the part
    and it never changes.
    """
    return "calibrate" if draw(f"llm judges of {task}: {author}", secret) % 2 else "tune"


def compute_agreement(pairs: Iterable[JudgedPair]) -> Agreement:
    """Return the agreement between people and the model, as Cohen's kappa (1960).

    Notes
    -----
    κ = (observed − chance) ÷ (1 − chance). The interval of the observed agreement, clustered by
    author like all rates (Korn and Graubard 1998), is converted to kappa; the chance agreement is
    taken as measured.
    """
    pairs = list(pairs)
    cells = Counter((pair.by_people, pair.by_model) for pair in pairs)
    both, people = cells[True, True], cells[True, False]
    model, neither = cells[False, True], cells[False, False]
    clusters = _count_by_author(pairs)
    counted_agreement = Agreement(len(pairs), len(clusters), both, people, model, neither)
    observed_rate = clustered_rate(clusters)
    if not isinstance(observed_rate, Rate):
        return counted_agreement
    n = len(pairs)
    chance = ((both + people) * (both + model) + (model + neither) * (people + neither)) / n**2
    if chance == 1:  # both always say the same: there is nothing to agree on
        return counted_agreement

    def beyond_chance(share: float) -> float:
        return max(-1.0, (share - chance) / (1 - chance))

    return counted_agreement._replace(
        kappa=beyond_chance(observed_rate.value),
        low=beyond_chance(observed_rate.low),
        high=beyond_chance(observed_rate.high),
    )


def _count_by_author(pairs: Iterable[JudgedPair]) -> list[tuple[float, int]]:
    """Return (agreements, examples) for each author. Each unknown author is a separate cluster."""
    agreements: Counter[Hashable] = Counter()
    examples: Counter[Hashable] = Counter()
    for number, (author, by_people, by_model) in enumerate(pairs):
        # Answers of one author are alike, so they count as one cluster.
        cluster = ("unknown", number) if author is None else author
        agreements[cluster] += by_people == by_model
        examples[cluster] += 1
    return [(agreements[cluster], n) for cluster, n in examples.items()]

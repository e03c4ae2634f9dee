"""Measure how far a language model that judges answers agrees with people. Pure."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Literal, NamedTuple

from validation.consensus.sampling import draw_number
from validation.rates.rates import Rate, compute_clustered_rate

MIN_EXAMPLES = 50
"""The minimum number of examples, judged by both, for an agreement to count as a calibration."""
Split = Literal["tune", "calibrate"]


class JudgedPair(NamedTuple):
    """An answer that both people and the model judged. author: None if unknown."""

    author: Hashable | None
    by_people: bool
    by_model: bool


class Agreement(NamedTuple):
    """Cohen's kappa with its 95% interval and confusion counts.

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
        """Return whether enough examples support the agreement for it to count as a calibration."""
        return self.n >= MIN_EXAMPLES and self.low is not None


def assign_split(task: int, author: Hashable, secret: str) -> Split:
    """Return the part that an author's examples belong to: tuning prompts or calibrating judges.

    A keyed hash assigns about half of the authors to each part. So nobody can choose the part, and
    it never changes.
    """
    return "calibrate" if draw_number(f"llm judges of {task}: {author}", secret) % 2 else "tune"


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
    judgements = []
    for number, (author, by_people, by_model) in enumerate(pairs):
        # Answers of one author are similar, so they are one cluster.
        cluster = ("unknown", number) if author is None else author
        judgements.append((cluster, by_people, by_model))
    kappa = compute_kappa(judgements)
    return Agreement(
        n=len(pairs),
        authors=len({cluster for cluster, _by_people, _by_model in judgements}),
        both_correct=cells[True, True],
        only_people=cells[True, False],
        only_model=cells[False, True],
        both_incorrect=cells[False, False],
        kappa=kappa.value,
        low=kappa.low,
        high=kappa.high,
    )


class KappaInterval(NamedTuple):
    """Cohen's kappa with its 95% interval; None if it is not defined."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


def compute_kappa(judgements: Iterable[tuple[Hashable, Hashable, Hashable]]) -> KappaInterval:
    """Return Cohen's kappa of two judges who choose among any categories.

    judgements: (cluster, first judge's choice, second judge's choice). Cases of one cluster may
    depend on one another. Undefined if there are no cases, or if both always make the same choice.
    """
    agreements: Counter[Hashable] = Counter()
    sizes: Counter[Hashable] = Counter()
    first_choices: Counter[Hashable] = Counter()
    second_choices: Counter[Hashable] = Counter()
    for cluster, first, second in judgements:
        agreements[cluster] += first == second
        sizes[cluster] += 1
        first_choices[first] += 1
        second_choices[second] += 1
    observed_rate = compute_clustered_rate(
        [(agreements[cluster], size) for cluster, size in sizes.items()]
    )
    if not isinstance(observed_rate, Rate):
        return KappaInterval()
    by_chance = sum(count * second_choices[choice] for choice, count in first_choices.items())
    chance_agreement = by_chance / sizes.total() ** 2
    if chance_agreement == 1:  # both always give the same answer, so agreement is undefined
        return KappaInterval()

    def convert_to_kappa(share: float) -> float:
        return max(-1.0, (share - chance_agreement) / (1 - chance_agreement))

    return KappaInterval(
        convert_to_kappa(observed_rate.value),
        convert_to_kappa(observed_rate.low),
        convert_to_kappa(observed_rate.high),
    )

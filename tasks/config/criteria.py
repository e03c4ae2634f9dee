"""Criteria that an answer meets or not, and the score of an answer by them. Pure.

A criterion with positive points is something that a good answer does. One with negative points is
something that it doesn't do, such as "Recommends an antibiotic".
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

Judgement = Literal["met", "not_met", "cannot_tell"]
"""What a person says of one criterion."""
JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)
CLEAR_JUDGEMENTS = ("met", "not_met")
MAX_CRITERIA = 50
"""The most criteria that an example can have; a configuration may set a lower limit."""
ScoreRule = Literal["share", "all"]
AnswerVerdict = Literal["correct", "incorrect", "cannot_tell"]


class Criterion(NamedTuple):
    """A criterion as its author wrote it."""

    text: str
    points: int


def read_criteria(value: Any) -> tuple[Criterion, ...]:
    """Return the criteria in a stored value; empty if the value is something else."""
    if not isinstance(value, list | tuple):
        return ()
    criteria = []
    # Imports may have stored a value of another form, which is shown as a text.
    for item in value:
        if not isinstance(item, Mapping) or "text" not in item:
            return ()
        criteria.append(Criterion(str(item["text"]), int(item.get("points", 1))))
    return tuple(criteria)


class ScoreRange(NamedTuple):
    """The lowest and the highest possible score (0-1). They differ while judgements are unclear."""

    low: float
    high: float

    @property
    def value(self) -> float | None:
        """Return the score; None if unclear judgements leave it open."""
        return self.low if self.low == self.high else None


def compute_score(
    criteria: Sequence[Criterion], judgements: Sequence[str | None], rule: ScoreRule
) -> ScoreRange:
    """Return the score of an answer, as a range if a judgement is neither `met` nor `not_met`.

    Parameters
    ----------
    criteria
        At least one has positive points.
    judgements
        A judgement of each criterion, in the same order. None stands for one that is not known.
    rule
        `share`: the points of the criteria that are met, divided by all positive points, and
        clipped to 0 and 1. `all`: 1 if all criteria with positive points are met and none with
        negative points, otherwise 0.

    Raises
    ------
    ValueError
        There is not one judgement of each criterion, or no criterion has positive points.

    Notes
    -----
    `share` is the score of HealthBench (Arora et al. 2025, section 4). The result comes from a
    single division, so that 3 points of 5 equal the threshold 0.6.
    """
    lowest, highest = [], []
    for criterion, judgement in zip(criteria, judgements, strict=True):
        is_clear = judgement in CLEAR_JUDGEMENTS
        is_positive = criterion.points > 0
        # The worst that an unclear judgement may hide is a criterion that costs points.
        lowest.append(judgement == "met" if is_clear else not is_positive)
        highest.append(judgement == "met" if is_clear else is_positive)
    return ScoreRange(_score(criteria, lowest, rule), _score(criteria, highest, rule))


def _score(criteria: Sequence[Criterion], are_met: Iterable[bool], rule: ScoreRule) -> float:
    positive_points = sum(max(criterion.points, 0) for criterion in criteria)
    if positive_points == 0:
        raise ValueError("No criterion has positive points, so no answer can gain any.")
    pairs = list(zip(criteria, are_met, strict=True))
    if rule == "all":
        return float(all(is_met == (criterion.points > 0) for criterion, is_met in pairs))
    # Negative points may exceed the positive ones, and no answer is worse than one that gains none.
    points = sum(criterion.points for criterion, is_met in pairs if is_met)
    return min(max(points, 0), positive_points) / positive_points


def judge_score(score: ScoreRange, threshold: float) -> AnswerVerdict:
    """Return whether an answer with this score is right: `cannot_tell` if its range leaves it open.

    threshold: the lowest score of a right answer (0-1).
    """
    if score.low >= threshold:
        return "correct"
    return "incorrect" if score.high < threshold else "cannot_tell"


def parse_judgements(
    values: Any, criteria: Sequence[Criterion], allowed: Sequence[Judgement] = JUDGEMENTS
) -> tuple[Judgement, ...] | None:
    """Return a person's judgements; None unless there is an allowed one of each criterion."""
    is_complete = isinstance(values, list | tuple) and len(values) == len(criteria)
    if not is_complete or not all(value in allowed for value in values):
        return None
    return tuple(cast(Sequence[Judgement], values))

"""How well two sets of marked stretches of a text agree. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Mark = Mapping[str, Any]


def marks_f1(said: Sequence[Mark], true: Sequence[Mark], *, overlap: bool = False) -> float:
    """Compute the F1 (0-1) of marks with `start`, `end` (in characters) and perhaps `tag`.

    Parameters
    ----------
    said, true
        The two sides.
    overlap
        A mark is right if the other side has one of the same tag that shares a character; else
        only if the other side has the same mark.

    Notes
    -----
    Nothing against nothing is 1, and nothing against something 0. Overlap is the "type" match of
    SemEval-2013 task 9 (Segura-Bedmar et al. 2013).

    Examples
    --------
    >>> marks_f1([{"start": 0, "end": 4}, {"start": 9, "end": 12}], [{"start": 0, "end": 4}])
    0.6666666666666666
    """
    if not said or not true:
        return float(not said and not true)
    if not overlap:
        both = Counter(map(_key, said)) & Counter(map(_key, true))
        return 2 * both.total() / (len(said) + len(true))
    precision = sum(any(_meet(one, other) for other in true) for one in said) / len(said)
    recall = sum(any(_meet(one, other) for other in said) for one in true) / len(true)
    return 2 * precision * recall / (precision + recall) if precision else 0.0


def _key(mark: Mark) -> tuple[Any, ...]:
    return mark["start"], mark["end"], mark.get("tag")


def _meet(one: Mark, other: Mark) -> bool:
    apart = one["end"] <= other["start"] or other["end"] <= one["start"]
    return not apart and one.get("tag") == other.get("tag")

"""Agreement of two sets of marked spans of a text. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Mark = Mapping[str, Any]


def compute_marks_f1(
    predicted_marks: Sequence[Mark], true_marks: Sequence[Mark], *, overlap: bool = False
) -> float:
    """Compute the F1 (0-1) of predicted marks against true ones.

    Parameters
    ----------
    predicted_marks, true_marks
        Marks with `start` and `end` (in characters), and optionally `tag`.
    overlap
        Whether a mark is right if it shares a character with a mark of the other side that has the
        same tag; otherwise only an equal mark counts.

    Notes
    -----
    The F1 is 1 if both sides are empty, and 0 if only one is. Overlap is the "type" match of
    SemEval-2013 task 9 (Segura-Bedmar et al. 2013).

    Examples
    --------
    >>> marks = [{"start": 0, "end": 4}, {"start": 9, "end": 12}]
    >>> compute_marks_f1(marks, marks[:1])
    0.6666666666666666
    """
    if not predicted_marks or not true_marks:
        return float(not predicted_marks and not true_marks)
    if not overlap:
        # As multisets, so that a mark given twice counts twice.
        common_marks = Counter(map(_build_key, predicted_marks)) & Counter(
            map(_build_key, true_marks)
        )
        return 2 * common_marks.total() / (len(predicted_marks) + len(true_marks))
    right_marks = [
        mark
        for mark in predicted_marks
        if any(_do_marks_overlap(mark, other) for other in true_marks)
    ]
    matched_true_marks = [
        mark
        for mark in true_marks
        if any(_do_marks_overlap(mark, other) for other in predicted_marks)
    ]
    precision, recall = (
        len(right_marks) / len(predicted_marks),
        len(matched_true_marks) / len(true_marks),
    )
    return 2 * precision * recall / (precision + recall) if precision else 0.0


def _build_key(mark: Mark) -> tuple[Any, ...]:
    return mark["start"], mark["end"], mark.get("tag")


def _do_marks_overlap(mark: Mark, other: Mark) -> bool:
    # Ends are exclusive, so marks that only touch share no character.
    are_apart = mark["end"] <= other["start"] or other["end"] <= mark["start"]
    return not are_apart and mark.get("tag") == other.get("tag")

"""The right answers to a free question, from what several people typed."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from annotation.verdict.outcome import squad_normalise


def right_answers(corrections: Iterable[Mapping[str, Any]]) -> list[str]:
    """List the distinct answers that validators typed (`answer`), the most frequent first.

    Answers that differ only in case, articles, punctuation or spaces are the same. Equally frequent
    answers keep their order.

    >>> right_answers([{"answer": "Lund"}, {"answer": "Tarn"}, {"answer": "the tarn."}])
    ['Tarn', 'Lund']
    """
    typed_answers = [str(correction["answer"]).strip() for correction in corrections]
    times = Counter(map(squad_normalise, typed_answers))
    # Backwards, so that of equal answers the first spelling stays.
    first = {squad_normalise(text): text for text in reversed(typed_answers)}
    # Equal numbers stay in the order in which the answers came.
    return [first[same] for same, _ in times.most_common()]

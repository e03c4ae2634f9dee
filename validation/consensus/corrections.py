"""The right answers to a free-text question, from the answers that several people typed."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from annotation.verdict.outcome import normalise_squad_text


def list_right_answers(corrections: Iterable[Mapping[str, Any]]) -> list[str]:
    """List the distinct answers that validators typed (`answer`), the most frequent first.

    Answers that differ only in case, articles, punctuation or spaces are the same. Equally frequent
    answers keep their order.

    >>> list_right_answers([{"answer": "Lund"}, {"answer": "Tarn"}, {"answer": "the tarn."}])
    ['Tarn', 'Lund']
    """
    typed_answers = [str(correction["answer"]).strip() for correction in corrections]
    answer_counts = Counter(map(normalise_squad_text, typed_answers))
    # In reverse, so that the first spelling of equal answers remains.
    first_text = {normalise_squad_text(text): text for text in reversed(typed_answers)}
    # Equal counts keep the order of the answers.
    return [first_text[is_equal] for is_equal, _ in answer_counts.most_common()]

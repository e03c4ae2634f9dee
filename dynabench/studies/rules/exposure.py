"""How much harmful content a person of a study was shown. Pure."""

from collections.abc import Collection


def count_exposure(
    shown: Collection[int], harmful: Collection[int], flagged_answers: int, *, is_warned: bool
) -> int:
    """Return how many harmful things a person was shown.

    shown: the texts that they were given. harmful: the texts that somebody reported as harmful.
    flagged_answers: their examples with a model's answer that a judge flagged as harmful.
    is_warned: whether the task has a content warning, which is about each of its texts.

    >>> count_exposure({1, 2, 3}, {3, 4}, 1, is_warned=False)
    2
    >>> count_exposure({1, 2, 3}, {3, 4}, 1, is_warned=True)
    4
    """
    texts = set(shown)
    # A text that was given twice is one text, as its reports don't say when it was read.
    return len(texts if is_warned else texts & set(harmful)) + flagged_answers

"""What a chosen answer to a judge's question says of the author, as a probability. Pure."""

UNSURE_SCORE = 0.5
"""Of a judge that calls an example unclear: people are asked for certain."""


def compute_choice_score(
    *, is_confirming: bool, is_unclear: bool, probability: float | None, choice_count: int
) -> float:
    """Return the probability (0-1) that the author is right, as a judge's choice says it.

    Parameters
    ----------
    is_confirming
        Whether the choice agrees with the author.
    is_unclear
        Whether the judge chose that it can't tell.
    probability
        With which the judge wrote its choice; None if its server doesn't say it.
    choice_count
        The number of choices besides “unclear”, at least 2.

    Notes
    -----
    The other choices share what is left of the probability. A bare choice is taken as sure. A
    judge chose what it found likeliest, so its probability counts as an equal share at least: part
    of it went to “unclear”, or to other ways of writing the same.

    >>> compute_choice_score(
    ...     is_confirming=False, is_unclear=False, probability=0.7, choice_count=3
    ... )
    0.15
    """
    if is_unclear:
        return UNSURE_SCORE
    # Servers round logarithms, which may lift a probability above 1.
    certainty = 1.0 if probability is None else min(1.0, max(1 / choice_count, probability))
    if is_confirming:
        return certainty
    return round((1 - certainty) / (choice_count - 1), 12)

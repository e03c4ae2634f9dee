"""Pure rules that choose what to say about a new verdict: a possible catch or a near miss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Meaning = Literal["first_on_text", "most_confident", "share_of_tries"]
Miss = Literal["close", "sure"]

MIN_MISTAKES = 5
"""The minimum number of mistakes in a week from which one is called the most confident."""
MIN_TRIES = 20
"""The minimum number of tries in a round for which the share of successful ones is shown."""
MAX_SHARE = 0.5
"""The maximum share of successful tries that is shown. A larger share is no surprise."""
CLOSE_REST = 0.4
"""A try was close if the model gave the other labels at least this probability."""
FEW_EXAMPLES = 20
"""A challenge with fewer confirmed examples than this needs more of them."""
MAX_IDEAS = 3


@dataclass(frozen=True)
class CatchFacts:
    """The facts about a possible catch when its verdict is shown.

    is_first_on_text: whether no earlier example about this text fooled the model. confidence: the
    model's probability (0-1) of its wrong answer; None if it may not be shown. week_mistakes:
    number of mistakes of the past week with a known probability. week_highest: the highest of these
    probabilities. round_tries: the number of tries in the round. round_fooled: how many of these
    tries fooled the model.
    """

    is_first_on_text: bool = False
    confidence: float | None = None
    week_mistakes: int = 0
    week_highest: float = 0.0
    round_tries: int = 0
    round_fooled: int = 0


def find_meaning(facts: CatchFacts) -> Meaning | None:
    """Return the rarest meaning that applies to a possible catch; None if none applies.

    The share is tried last, because it is true of nearly every catch.
    """
    if facts.is_first_on_text:
        return "first_on_text"
    is_known = facts.confidence is not None and facts.week_mistakes >= MIN_MISTAKES
    if is_known and facts.confidence >= facts.week_highest:  # type: ignore[operator]
        return "most_confident"
    if facts.round_tries >= MIN_TRIES and compute_odds(facts.round_tries, facts.round_fooled):
        return "share_of_tries"
    return None


def compute_odds(tries: int, fooled: int) -> int | None:
    """Return n for "1 in n tries fools the model"; None if none does, or more than half do.

    >>> compute_odds(90, 30), compute_odds(90, 0), compute_odds(90, 60)
    (3, None, None)
    """
    if not fooled or fooled > MAX_SHARE * tries:
        return None
    # Rounded: nobody reads 1 in 3.4.
    return round(tries / fooled)


def describe_miss(chances: Mapping[str, float] | None, own_label: str) -> Miss | None:
    """Return "close" or "sure" for a try that fooled no model; None if the chances are hidden.

    Parameters
    ----------
    chances
        The model's probabilities by label, as shown to the author; None if they are hidden.
    own_label
        The author's label, which the model chose, too.
    """
    if not chances or own_label not in chances:
        return None
    # The model agreed, so what the author hoped for is everything but this label.
    other_probability = 1 - chances[own_label]
    return "close" if other_probability >= CLOSE_REST else "sure"


def choose_ideas(confirmed_by_challenge: Mapping[str, int]) -> Sequence[str]:
    """Return up to MAX_IDEAS challenges of which a round has few confirmed examples, rarest first.

    >>> choose_ideas({"irony": 3, "numbers": 0, "names": 40})
    ['numbers', 'irony']
    """
    rare_challenges = [
        name for name, count in confirmed_by_challenge.items() if count < FEW_EXAMPLES
    ]
    # Sorting is stable, so equally thin ones keep the order of the configuration.
    return sorted(rare_challenges, key=lambda name: confirmed_by_challenge[name])[:MAX_IDEAS]

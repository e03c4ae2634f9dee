"""Which examples people judge if a judge model has answered them all. Pure.

Each example gets a chance of being drawn before anybody votes on it. So people's votes on the drawn
examples can be weighted back to all of them (`validation.rates.assisted_rates`), whatever the
judge's errors.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, NamedTuple
from uuid import UUID

from core.text.words import gettext_noop
from validation.consensus.sampling import draw_number

DrawReason = Literal["sure", "unsure", "no_answer", "unreadable"]
DEFAULT_MIN_CHANCE = 0.1
DEFAULT_PROMPT = (
    "You judge an example as a careful person does who sees only the texts below. Read all of "
    "them. Then answer the question about the example, whatever its author wants to hear. If the "
    "texts leave it open, choose “Unclear”."
)
"""The site's instruction, which an owner can replace. In English, as models read it."""


@dataclass(frozen=True, slots=True)
class DrawRule:
    """How a round draws the examples that people judge.

    judge: the id of the task's model that answers every example. min_chance: the chance (0-1] of an
    example of which the judge is sure. prompt: the instruction by which a chat model judges; None
    if the model gives its own label, which is compared with the author's. Raises ValueError if the
    chance isn't above 0 and at most 1.
    """

    judge: int
    min_chance: float = DEFAULT_MIN_CHANCE
    prompt: str | None = None

    def __post_init__(self) -> None:
        # An example with the chance 0 could never be weighted back.
        if not 0 < self.min_chance <= 1:
            raise ValueError(gettext_noop("Enter a chance above 0 and at most 1."))

    @property
    def prompt_digest(self) -> str:
        """Return what tells two instructions of one model apart; "" without an instruction."""
        return "" if self.prompt is None else sha256(self.prompt.encode()).hexdigest()[:16]

    def has_same_judge(self, other: "DrawRule") -> bool:
        """Return whether both rules ask the same model in the same way."""
        return (self.judge, self.prompt) == (other.judge, other.prompt)


class JudgeAnswer(NamedTuple):
    """What a judge says of one example.

    score: the probability (0-1) that the author is right; None without a usable answer.
    is_readable: False if it answered, but with none of the possible answers.
    """

    score: float | None
    is_readable: bool = True


@dataclass(frozen=True, slots=True)
class Draw:
    """The chance of one example, the reason for it, and whether the example was drawn.

    judge_score: the probability (0-1) that the author is right, as the judge says. None if the
    judge gave no usable answer.
    """

    judge_score: float | None
    chance: float
    is_drawn: bool
    reason: DrawReason


def compute_draw_chance(judge_score: float | None, min_chance: float) -> float:
    """Return the chance (0-1] that people are asked about an example.

    This is twice the probability with which the judge errs, as it says itself, and at least
    `min_chance`. It is 1 at even odds, and without an answer.

    >>> [compute_draw_chance(score, 0.1) for score in (None, 0.5, 0.75, 1.0)]
    [1.0, 1.0, 0.5, 0.1]
    """
    if judge_score is None:
        return 1.0
    return max(min_chance, 2 * min(judge_score, 1 - judge_score))


def draw_for_people(uuid: UUID, answer: JudgeAnswer, min_chance: float, secret: str) -> Draw:
    """Draw whether people are asked about an example. Always the same for the same arguments.

    So a retry, or two workers at once, draw the same.

    Parameters
    ----------
    uuid
        The example's UUID.
    answer
        What the judge says. Without a score the chance is 1.
    min_chance
        As in `DrawRule`.
    secret
        The site's secret, so that authors can't predict the draw.
    """
    chance = compute_draw_chance(answer.score, min_chance)
    reason: DrawReason = "unsure" if chance > min_chance else "sure"
    if answer.score is None:
        # A guess at what the judge meant would be a verdict that it never gave.
        reason = "no_answer" if answer.is_readable else "unreadable"
    # Its own word, so that the draw is independent of `is_in_share` and of the review's sample.
    is_drawn = draw_number(f"people {uuid}", secret) < chance * 2**64
    return Draw(answer.score, chance, is_drawn, reason)

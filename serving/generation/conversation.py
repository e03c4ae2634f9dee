"""One answer while it is written."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from tokenizers import Tokenizer

from serving.generation.sampling import (
    Logits,
    Sampling,
    choose,
    likeliest,
    log_probabilities,
    mask_others,
)
from serving.generation.text import Text

Reason = Literal["stop", "length"]


@dataclass(frozen=True)
class Told:
    """A token with its log probability, None where nothing stands before it, and the likeliest."""

    token: int
    logprob: float | None
    top: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class Piece:
    """More of an answer. The last one has a reason: `stop` (the model or a stop text ended it) or
    `length` (it was cut at the limit). told: the tokens since the piece before, where they are
    told; written: the tokens of the answer so far."""

    text: str
    reason: Reason | None = None
    told: Sequence[Told] = ()
    written: int = 0


Tell = Callable[[Piece | Exception], None]


@dataclass(eq=False)
class Conversation:
    """A prompt and the answer to it, as the batch writes it.

    ids: prompt and answer; done: of these, so many are in the decoder's memory; cached: of these,
    so many were there before. echo: the prompt's tokens are told as well. choices: the tokens of
    each text that the answer may be, where it is not free. The batch calls `tell`.
    """

    ids: list[int]
    sampling: Sampling
    tell: Tell
    deadline: float
    text: Text
    ends: frozenset[int]
    echo: bool = False
    choices: Sequence[Sequence[int]] = ()
    prompt: int = 0
    done: int = 0
    cached: int = 0
    told: list[Told] = field(default_factory=list)
    began_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.prompt = len(self.ids)
        self._chance = np.random.default_rng(self.sampling.seed)
        self._gone = threading.Event()
        self._shown = 0  # of the tokens that are told, so many went with a piece

    @property
    def written(self) -> int:
        """Count the tokens of the answer so far, with the one that ended it."""
        return len(self.ids) - self.prompt

    @property
    def is_read(self) -> bool:
        """Return whether the whole prompt is in the decoder's memory."""
        return self.done >= self.prompt

    @property
    def is_gone(self) -> bool:
        """Return whether nobody waits for it any more."""
        return self._gone.is_set()

    def cancel(self) -> None:
        """Stop writing it at the next token. Any thread may call it."""
        self._gone.set()

    def note_prompt(self, logits: Logits, start: int) -> None:
        """Tell the prompt's tokens that follow these logits [tokens, vocabulary]."""
        if not self.told:
            self.told.append(Told(self.ids[0], None))
        for place, row in enumerate(log_probabilities(logits), start=start + 1):
            if place < self.prompt:
                self._note(self.ids[place], row)

    def take(self, logits: Logits) -> Reason | None:
        """Choose the next token by its logits [vocabulary] and tell it; why it is the last."""
        if self.sampling.max_tokens == 0:  # only the prompt is told
            self.tell(Piece("", "length"))
            return "length"
        left = self._left()
        token = choose(mask_others(logits, left) if left else logits, self.sampling, self._chance)
        if self.sampling.logprobs is not None:
            self._note(token, log_probabilities(logits))
        self.ids.append(token)
        shown = "" if token in self.ends else self.text.add(token)
        reason: Reason | None = None
        if token in self.ends or self.text.is_stopped or (left and not self._left()):
            reason = "stop"
        elif self.written >= self.sampling.max_tokens:
            reason = "length"
        if reason:
            shown += self.text.rest()
        if shown or reason:
            told, self._shown = tuple(self.told[self._shown :]), len(self.told)
            self.tell(Piece(shown, reason, told, self.written))
        return reason

    def _left(self) -> set[int]:
        """Return the tokens that can continue towards a choice; none if it is whole or free."""
        now, answer = self.written, self.ids[self.prompt :]
        longer = {one[now] for one in self.choices if [*one[:now]] == answer and one[now:]}
        is_whole = any([*one] == answer for one in self.choices)
        return longer | self.ends if longer and is_whole else longer  # it is 1, or becomes 10

    def _note(self, token: int, logarithms: np.ndarray) -> None:  # type: ignore[type-arg]
        top = likeliest(logarithms, self.sampling.logprobs or 0)
        self.told.append(Told(token, float(logarithms[token]), top))


def conversation(
    ids: Sequence[int],
    sampling: Sampling,
    tokenizer: Tokenizer,
    ends: frozenset[int],
    *,
    tell: Tell,
    deadline: float,
    echo: bool = False,
) -> Conversation:
    """Return a conversation whose answer is still empty.

    deadline: a point of time.monotonic().
    """
    text = Text(tokenizer, sampling.stop)
    if sampling.ignores_end:
        ends = frozenset()
    choices = [tokenizer.encode(one, add_special_tokens=False).ids for one in sampling.choices]
    return Conversation(list(ids), sampling, tell, deadline, text, ends, echo, choices)

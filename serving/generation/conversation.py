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
class ReportedToken:
    """A token with its log probability, and the likeliest tokens at its position.

    logprob: None for the first token of a prompt, which follows nothing.
    """

    token: int
    logprob: float | None
    top: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class Piece:
    """The next part of an answer.

    reason: only of the last piece; `stop` (the model or a stop text ended it) or `length` (it
    reached the limit). reported: the tokens since the previous piece, if requested. written: the
    number of the answer's tokens so far.
    """

    text: str
    reason: Reason | None = None
    reported: Sequence[ReportedToken] = ()
    written: int = 0


Tell = Callable[[Piece | Exception], None]


@dataclass(eq=False)
class Conversation:
    """A prompt and its answer, which the batch writes token by token.

    ids: tokens of prompt and answer. done: how many of these are in the decoder's memory. cached:
    how many were there at the beginning. echo: whether the prompt's tokens are reported, too.
    choices: the tokens of each text that the answer may be; empty if the answer is free. tell:
    called by the batch with each piece or an error.
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
    reported: list[ReportedToken] = field(default_factory=list)
    began_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.prompt = len(self.ids)
        self._chance = np.random.default_rng(self.sampling.seed)
        self._gone = threading.Event()
        self._sent = 0  # how many of the reported tokens went with a piece

    @property
    def written(self) -> int:
        """Return the number of the answer's tokens so far, including the one that ended it."""
        return len(self.ids) - self.prompt

    @property
    def is_read(self) -> bool:
        """Return whether the whole prompt is in the decoder's memory."""
        return self.done >= self.prompt

    @property
    def is_gone(self) -> bool:
        """Return whether the conversation was cancelled."""
        return self._gone.is_set()

    def cancel(self) -> None:
        """Stop writing the answer before the next token. Thread-safe."""
        self._gone.set()

    def note_prompt(self, logits: Logits, start: int) -> None:
        """Report the prompt's tokens that follow these logits [tokens, vocabulary].

        start: the index of the first token that was read.
        """
        if not self.reported:
            self.reported.append(ReportedToken(self.ids[0], None))
        for place, row in enumerate(log_probabilities(logits), start=start + 1):
            if place < self.prompt:
                self._note(self.ids[place], row)

    def take(self, logits: Logits) -> Reason | None:
        """Choose the next token by its logits [vocabulary], and report a piece if one is complete.

        Returns the reason why it is the last token; None if it is not.
        """
        if self.sampling.max_tokens == 0:  # only the prompt is reported
            self.tell(Piece("", "length"))
            return "length"
        allowed_tokens = self._left()
        masked = mask_others(logits, allowed_tokens) if allowed_tokens else logits
        token = choose(masked, self.sampling, self._chance)
        if self.sampling.logprobs is not None:
            self._note(token, log_probabilities(logits))
        self.ids.append(token)
        is_end = token in self.ends
        text = "" if is_end else self.text.add(token)
        is_whole_choice = bool(allowed_tokens) and not self._left()
        reason: Reason | None = None
        if is_end or self.text.is_stopped or is_whole_choice:
            reason = "stop"
        elif self.written >= self.sampling.max_tokens:
            reason = "length"
        if reason:
            text += self.text.rest()
        # Tokens whose text is still held back are reported with the piece that shows them.
        if text or reason:
            reported, self._sent = tuple(self.reported[self._sent :]), len(self.reported)
            self.tell(Piece(text, reason, reported, self.written))
        return reason

    def _left(self) -> set[int]:
        """Return the tokens that can continue towards a choice; empty if it is complete or free."""
        answer = self.ids[self.prompt :]
        next_tokens: set[int] = set()
        is_whole = False
        for choice in self.choices:
            tokens = list(choice)
            if tokens == answer:
                is_whole = True
            elif tokens[: len(answer)] == answer:
                next_tokens.add(tokens[len(answer)])
        # A whole choice may also begin a longer one: `1` is an answer, or becomes `10`.
        if next_tokens and is_whole:
            next_tokens |= self.ends
        return next_tokens

    def _note(self, token: int, logarithms: np.ndarray) -> None:  # type: ignore[type-arg]
        top = likeliest(logarithms, self.sampling.logprobs or 0)
        self.reported.append(ReportedToken(token, float(logarithms[token]), top))


def conversation(
    ids: Sequence[int],
    sampling: Sampling,
    tokenizer: Tokenizer,
    end_tokens: frozenset[int],
    *,
    tell: Tell,
    deadline: float,
    echo: bool = False,
) -> Conversation:
    """Return a conversation with an empty answer.

    deadline: a time of time.monotonic().
    """
    answer_text = Text(tokenizer, sampling.stop)
    if sampling.ignores_end:
        end_tokens = frozenset()
    choices = [tokenizer.encode(text, add_special_tokens=False).ids for text in sampling.choices]
    return Conversation(list(ids), sampling, tell, deadline, answer_text, end_tokens, echo, choices)

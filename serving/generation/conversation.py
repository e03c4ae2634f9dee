"""A prompt with its answer while the model writes it."""

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
    choose_token,
    compute_log_probabilities,
    find_likeliest_tokens,
    mask_other_tokens,
)
from serving.generation.text import AnswerText

EndReason = Literal["stop", "length"]


@dataclass(frozen=True)
class ReportedToken:
    """A token with its log probability, and the likeliest tokens at its position.

    logprob: None for the first token of a prompt, which nothing precedes. top: pairs of a token and
    its log probability.
    """

    token: int
    logprob: float | None
    top: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class Piece:
    """The next part of an answer.

    reason: None except for the last piece; `stop` (the model or a stop text ended the answer) or
    `length` (it reached the limit). reported: the tokens since the previous piece, if requested.
    answer_token_count: the number of tokens of the answer so far.
    """

    text: str
    reason: EndReason | None = None
    reported: Sequence[ReportedToken] = ()
    answer_token_count: int = 0


PieceCallback = Callable[[Piece | Exception], None]


@dataclass(eq=False)
class Conversation:
    """A prompt and its answer, which the batch writes token by token.

    ids: the tokens of prompt and answer. prompt_token_count: the number of tokens of the prompt.
    stored_token_count: how many tokens are in the decoder's memory. cached_token_count: how many of
    them came from the row memory. end_tokens: the tokens that end an answer. is_prompt_reported:
    whether the prompt's tokens are reported, too. choices: the tokens of each possible answer;
    empty if the answer is free. on_piece: called by the batch with each piece or an error.
    deadline, began_at: times of time.monotonic().
    """

    ids: list[int]
    sampling: Sampling
    on_piece: PieceCallback
    deadline: float
    text: AnswerText
    end_tokens: frozenset[int]
    is_prompt_reported: bool = False
    choices: Sequence[Sequence[int]] = ()
    prompt_token_count: int = 0
    stored_token_count: int = 0
    cached_token_count: int = 0
    reported: list[ReportedToken] = field(default_factory=list)
    began_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.prompt_token_count = len(self.ids)
        self._rng = np.random.default_rng(self.sampling.seed)
        self._cancelled_event = threading.Event()
        self._sent_count = 0  # how many of the reported tokens went with a piece

    @property
    def answer_token_count(self) -> int:
        """Return the number of the answer's tokens so far, including the one that ended it."""
        return len(self.ids) - self.prompt_token_count

    @property
    def is_prompt_read(self) -> bool:
        """Return whether the whole prompt is in the decoder's memory."""
        return self.stored_token_count >= self.prompt_token_count

    @property
    def is_cancelled(self) -> bool:
        """Return whether the conversation was cancelled."""
        return self._cancelled_event.is_set()

    def cancel(self) -> None:
        """Stop writing the answer before the next token. Thread-safe."""
        self._cancelled_event.set()

    def report_prompt(self, logits: Logits, start: int) -> None:
        """Report the prompt's tokens that follow these logits [tokens, vocabulary].

        start: the index in the prompt of the token that the first logits belong to.
        """
        if not self.reported:
            self.reported.append(ReportedToken(self.ids[0], None))
        for index, row in enumerate(compute_log_probabilities(logits), start=start + 1):
            if index < self.prompt_token_count:
                self._report_token(self.ids[index], row)

    def add_next_token(self, logits: Logits) -> EndReason | None:
        """Choose the next token by its logits [vocabulary], and report a piece if one is complete.

        Returns the reason why it is the last token; None if the answer continues.
        """
        if self.sampling.max_tokens == 0:  # only the prompt is reported
            self.on_piece(Piece("", "length"))
            return "length"
        allowed_tokens = self._find_allowed_tokens()
        masked_logits = mask_other_tokens(logits, allowed_tokens) if allowed_tokens else logits
        token = choose_token(masked_logits, self.sampling, self._rng)
        if self.sampling.logprobs is not None:
            self._report_token(token, compute_log_probabilities(logits))
        self.ids.append(token)
        is_end = token in self.end_tokens
        text = "" if is_end else self.text.add_token(token)
        is_whole_choice = bool(allowed_tokens) and not self._find_allowed_tokens()
        reason: EndReason | None = None
        if is_end or self.text.is_stopped or is_whole_choice:
            reason = "stop"
        elif self.answer_token_count >= self.sampling.max_tokens:
            reason = "length"
        if reason:
            text += self.text.take_withheld_text()
        # Tokens whose text is still held back are reported with the piece that shows them.
        if text or reason:
            reported, self._sent_count = (
                tuple(self.reported[self._sent_count :]),
                len(self.reported),
            )
            self.on_piece(Piece(text, reason, reported, self.answer_token_count))
        return reason

    def _find_allowed_tokens(self) -> set[int]:
        """Return the tokens that can continue the answer towards one of the choices.

        Empty if there are no choices, or if the answer is a complete choice that no other
        continues.
        """
        answer = self.ids[self.prompt_token_count :]
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
            next_tokens |= self.end_tokens
        return next_tokens

    def _report_token(self, token: int, logarithms: np.ndarray) -> None:  # type: ignore[type-arg]
        top_tokens = find_likeliest_tokens(logarithms, self.sampling.logprobs or 0)
        self.reported.append(ReportedToken(token, float(logarithms[token]), top_tokens))


def create_conversation(
    token_ids: Sequence[int],
    sampling: Sampling,
    tokenizer: Tokenizer,
    end_tokens: frozenset[int],
    *,
    on_piece: PieceCallback,
    deadline: float,
    is_prompt_reported: bool = False,
) -> Conversation:
    """Return a conversation with an empty answer.

    deadline: a time of time.monotonic(). is_prompt_reported: whether to report the prompt's tokens,
    too.
    """
    answer_text = AnswerText(tokenizer, sampling.stop)
    if sampling.is_end_ignored:
        end_tokens = frozenset()
    choices = [tokenizer.encode(text, add_special_tokens=False).ids for text in sampling.choices]
    return Conversation(
        list(token_ids),
        sampling,
        on_piece,
        deadline,
        answer_text,
        end_tokens,
        is_prompt_reported,
        choices,
    )

"""Answers in OpenAI's words."""

import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from tokenizers import Tokenizer

from tasks.targets.serving.errors import ServingError
from tasks.targets.serving.generation.conversation import Conversation, Piece, Reason, Told

DONE = b"data: [DONE]\n\n"


def as_openai_error(error: ServingError) -> dict[str, Any]:
    """An error as OpenAI's clients read it."""
    is_theirs = error.status < 500
    return {
        "error": {
            "message": str(error),
            "type": "invalid_request_error" if is_theirs else "server_error",
            "param": next(iter(error.fields), None),
            "code": error.code,
        }
    }


def event(value: Any) -> bytes:
    """One server-sent event."""
    return b"data: %b\n\n" % orjson.dumps(value)


class Reply:
    """The answers to one request: `kind` is chat.completion or text_completion."""

    def __init__(self, kind: str, model: str, fingerprint: str, tokenizer: Tokenizer) -> None:
        self._is_chat, self._tokenizer = kind == "chat.completion", tokenizer
        self._object = kind
        self._head = {
            "id": f"{'chatcmpl' if self._is_chat else 'cmpl'}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": fingerprint,
        }

    def whole(
        self, written: Sequence[tuple[Conversation, str, Reason]], echo: bool
    ) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        choices = [
            self._choice(number, one, text, reason, echo)
            for number, (one, text, reason) in enumerate(written)
        ]
        usage = _usage([one for one, _, _ in written])
        return {**self._head, "object": self._object, "choices": choices, "usage": usage}

    def first(self) -> Iterator[bytes]:
        """The event that begins a stream."""
        if self._is_chat:
            yield self._chunk({"delta": {"role": "assistant", "content": ""}}, None)

    def piece(self, piece: Piece) -> Iterator[bytes]:
        """The events of one piece."""
        text = {"delta": {"content": piece.text}} if self._is_chat else {"text": piece.text}
        if piece.text:
            yield self._chunk(text, None)
        if piece.reason:
            yield self._chunk({"delta": {}} if self._is_chat else {"text": ""}, piece.reason)

    def usage(self, one: Conversation) -> bytes:
        """The event with the number of tokens."""
        head = {**self._head, "object": self._streamed}
        return event({**head, "choices": [], "usage": _usage([one])})

    @property
    def _streamed(self) -> str:
        return f"{self._object}.chunk" if self._is_chat else self._object

    def _chunk(self, what: dict[str, Any], reason: Reason | None) -> bytes:
        choice = {"index": 0, **what, "logprobs": None, "finish_reason": reason}
        return event({**self._head, "object": self._streamed, "choices": [choice]})

    def _choice(
        self, number: int, one: Conversation, text: str, reason: Reason, echo: bool
    ) -> dict[str, Any]:
        logprobs = None
        if one.sampling.logprobs is not None:
            logprobs = self._in_chat(one.told) if self._is_chat else self._in_text(one.told)
        if echo:
            prompt = one.ids[: one.prompt]
            text = self._tokenizer.decode(prompt, skip_special_tokens=False) + text
        said: dict[str, Any] = (
            {"message": {"role": "assistant", "content": text, "refusal": None}}
            if self._is_chat
            else {"text": text}
        )
        return {"index": number, **said, "logprobs": logprobs, "finish_reason": reason}

    def _in_chat(self, told: Sequence[Told]) -> dict[str, Any]:
        def shown(token: int, logprob: float | None) -> dict[str, Any]:
            text = self._word(token)
            return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

        return {
            "content": [
                shown(one.token, one.logprob)
                | {"top_logprobs": [shown(token, value) for token, value in one.top]}
                for one in told
            ]
        }

    def _in_text(self, told: Sequence[Told]) -> dict[str, Any]:
        words = [self._word(one.token) for one in told]
        return {
            "tokens": words,
            "token_logprobs": [one.logprob for one in told],
            "top_logprobs": [
                None if one.logprob is None else {self._word(t): value for t, value in one.top}
                for one in told
            ],
            "text_offset": [sum(map(len, words[:n])) for n in range(len(words))],
        }

    def _word(self, token: int) -> str:
        word: str = self._tokenizer.decode([token], skip_special_tokens=False)
        return word


def _usage(written: Sequence[Conversation]) -> dict[str, Any]:
    read, new = (sum(getattr(one, name) for one in written) for name in ("prompt", "written"))
    return {
        "prompt_tokens": read,
        "completion_tokens": new,
        "total_tokens": read + new,
        "prompt_tokens_details": {"cached_tokens": sum(one.cached for one in written)},
    }

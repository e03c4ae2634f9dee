"""Answers in OpenAI's words."""

import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from tokenizers import Tokenizer

from serving.errors import ServingError
from serving.generation.conversation import Conversation, Piece, Reason, Told

DONE = b"data: [DONE]\n\n"


def as_openai_error(error: ServingError) -> dict[str, Any]:
    """Return an error in the form that OpenAI's clients read."""
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
    """Encode one server-sent event."""
    return b"data: %b\n\n" % orjson.dumps(value)


class Reply:
    """The answers to one request: `kind` is chat.completion or text_completion."""

    def __init__(
        self, kind: str, model: str, fingerprint: str, tokenizer: Tokenizer, call: str = ""
    ) -> None:
        """Prepare what all parts of the reply share.

        call: the function whose arguments are the answer; "" when the answer is a text.
        """
        self._is_chat, self._tokenizer = kind == "chat.completion", tokenizer
        self._object, self._offset = kind, 0  # characters of the tokens told so far
        self._call, self._call_id = call, f"call_{secrets.token_hex(12)}"
        self._head = {
            "id": f"{'chatcmpl' if self._is_chat else 'cmpl'}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": fingerprint,
        }

    def whole(
        self, written: Sequence[tuple[Conversation, str, Reason]], echo: bool
    ) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        choices = [
            self._choice(number, one, text, reason, echo)
            for number, (one, text, reason) in enumerate(written)
        ]
        each = [one for one, _, _ in written]
        usage = _usage(
            sum(one.prompt for one in each),
            sum(one.written for one in each),
            sum(one.cached for one in each),
        )
        return {**self._head, "object": self._object, "choices": choices, "usage": usage}

    def first(self) -> Iterator[bytes]:
        """Yield the event that begins a stream."""
        if self._call:
            delta = {"content": None, "tool_calls": [{"index": 0, **self._called("")}]}
            yield self._chunk({"delta": {"role": "assistant", **delta}}, None)
        elif self._is_chat:
            yield self._chunk({"delta": {"role": "assistant", "content": ""}}, None)

    def piece(self, piece: Piece, usage: dict[str, Any] | None = None) -> Iterator[bytes]:
        """Yield the events of one piece, each with `usage`."""
        logprobs = self._logprobs(piece.told) if piece.told else None
        if piece.text:
            yield self._chunk({**self._more(piece.text), "logprobs": logprobs}, None, usage)
            logprobs = None
        if piece.reason:
            end: dict[str, Any] = {"delta": {}} if self._is_chat else {"text": ""}
            yield self._chunk({**end, "logprobs": logprobs}, piece.reason, usage)

    def usage(self, one: Conversation) -> bytes:
        """Return the event with the number of tokens."""
        head = {**self._head, "object": self._streamed}
        return event({**head, "choices": [], "usage": usage_of(one, one.written)})

    @property
    def _streamed(self) -> str:
        return f"{self._object}.chunk" if self._is_chat else self._object

    def _chunk(
        self, what: dict[str, Any], reason: Reason | None, usage: dict[str, Any] | None = None
    ) -> bytes:
        choice = {"index": 0, "logprobs": None, **what, "finish_reason": self._ended(reason)}
        more = {} if usage is None else {"usage": usage}
        return event({**self._head, "object": self._streamed, "choices": [choice], **more})

    def _more(self, text: str) -> dict[str, Any]:
        """Return what a chunk adds to the answer."""
        if self._call:
            return {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}}
        return {"delta": {"content": text}} if self._is_chat else {"text": text}

    def _called(self, arguments: str) -> dict[str, Any]:
        function = {"name": self._call, "arguments": arguments}
        return {"id": self._call_id, "type": "function", "function": function}

    def _ended(self, reason: Reason | None) -> str | None:
        return "tool_calls" if self._call and reason == "stop" else reason

    def _logprobs(self, told: Sequence[Told]) -> dict[str, Any]:
        if self._is_chat:
            return self._in_chat(told)
        logprobs = self._in_text(told, self._offset)
        self._offset += sum(map(len, logprobs["tokens"]))
        return logprobs

    def _choice(
        self, number: int, one: Conversation, text: str, reason: Reason, echo: bool
    ) -> dict[str, Any]:
        logprobs = None
        if one.sampling.logprobs is not None:
            logprobs = self._in_chat(one.told) if self._is_chat else self._in_text(one.told, 0)
        if echo:
            prompt = one.ids[: one.prompt]
            text = self._tokenizer.decode(prompt, skip_special_tokens=False) + text
        said: dict[str, Any] = {"text": text}
        if self._is_chat:
            said = {"message": {"role": "assistant", "content": text, "refusal": None}}
        if self._call:
            said["message"] |= {"content": None, "tool_calls": [self._called(text)]}
        return {"index": number, **said, "logprobs": logprobs, "finish_reason": self._ended(reason)}

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

    def _in_text(self, told: Sequence[Told], offset: int) -> dict[str, Any]:
        """Return the log probabilities of a text completion.

        offset: the characters before these tokens.
        """
        words = [self._word(one.token) for one in told]
        return {
            "tokens": words,
            "token_logprobs": [one.logprob for one in told],
            "top_logprobs": [
                None if one.logprob is None else {self._word(t): value for t, value in one.top}
                for one in told
            ],
            "text_offset": [offset + sum(map(len, words[:n])) for n in range(len(words))],
        }

    def _word(self, token: int) -> str:
        word: str = self._tokenizer.decode([token], skip_special_tokens=False)
        return word


def usage_of(one: Conversation, written: int) -> dict[str, Any]:
    """Count the tokens of a conversation of which `written` tokens are written."""
    return _usage(one.prompt, written, one.cached)


def _usage(prompt: int, written: int, cached: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": cached},
    }

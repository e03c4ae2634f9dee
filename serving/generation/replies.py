"""Answers in OpenAI's format."""

import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from tokenizers import Tokenizer

from serving.errors import ServingError
from serving.generation.conversation import Conversation, Piece, Reason, ReportedToken

DONE = b"data: [DONE]\n\n"


def as_openai_error(error: ServingError) -> dict[str, Any]:
    """Return an error in the format that OpenAI's clients read."""
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
    """A builder of the responses to one request. `kind` is chat.completion or text_completion."""

    def __init__(
        self, kind: str, model: str, fingerprint: str, tokenizer: Tokenizer, call: str = ""
    ) -> None:
        """Prepare what all parts of the reply share.

        call: the name of the function whose arguments are the answer; "" if the answer is a text.
        """
        self._is_chat, self._tokenizer = kind == "chat.completion", tokenizer
        self._object, self._offset = kind, 0  # characters of the tokens told so far
        self._call, self._call_id = call, f"call_{secrets.token_hex(12)}"
        prefix = "chatcmpl" if self._is_chat else "cmpl"
        self._head = {
            "id": f"{prefix}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": fingerprint,
        }

    def whole(
        self, written: Sequence[tuple[Conversation, str, Reason]], echo: bool
    ) -> dict[str, Any]:
        """Return the response body without streaming."""
        choices = []
        prompt = completion = cached_tokens = 0
        for number, (conversation, text, reason) in enumerate(written):
            choices.append(self._choice(number, conversation, text, reason, echo))
            prompt += conversation.prompt
            completion += conversation.written
            cached_tokens += conversation.cached
        usage = _usage(prompt, completion, cached_tokens)
        return {**self._head, "object": self._object, "choices": choices, "usage": usage}

    def first(self) -> Iterator[bytes]:
        """Yield the event that begins a stream."""
        if self._call:
            calls = [{"index": 0, **self._called("")}]
            delta = {"role": "assistant", "content": None, "tool_calls": calls}
            yield self._chunk({"delta": delta}, None)
        elif self._is_chat:
            yield self._chunk({"delta": {"role": "assistant", "content": ""}}, None)

    def piece(self, piece: Piece, usage: dict[str, Any] | None = None) -> Iterator[bytes]:
        """Yield the events for one piece, each with `usage`."""
        logprobs = self._logprobs(piece.reported) if piece.reported else None
        if piece.text:
            yield self._chunk({**self._more(piece.text), "logprobs": logprobs}, None, usage)
            logprobs = None
        if piece.reason:
            end: dict[str, Any] = {"delta": {}} if self._is_chat else {"text": ""}
            yield self._chunk({**end, "logprobs": logprobs}, piece.reason, usage)

    def usage(self, conversation: Conversation) -> bytes:
        """Return the event with the token counts."""
        head = {**self._head, "object": self._streamed}
        usage = usage_of(conversation, conversation.written)
        return event({**head, "choices": [], "usage": usage})

    @property
    def _streamed(self) -> str:
        return f"{self._object}.chunk" if self._is_chat else self._object

    def _chunk(
        self, what: dict[str, Any], reason: Reason | None, usage: dict[str, Any] | None = None
    ) -> bytes:
        choice = {"index": 0, "logprobs": None, **what, "finish_reason": self._ended(reason)}
        chunk = {**self._head, "object": self._streamed, "choices": [choice]}
        if usage is not None:
            chunk["usage"] = usage
        return event(chunk)

    def _more(self, text: str) -> dict[str, Any]:
        """Return the addition of a chunk to the answer."""
        if self._call:
            return {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}}
        if self._is_chat:
            return {"delta": {"content": text}}
        return {"text": text}

    def _called(self, arguments: str) -> dict[str, Any]:
        function = {"name": self._call, "arguments": arguments}
        return {"id": self._call_id, "type": "function", "function": function}

    def _ended(self, reason: Reason | None) -> str | None:
        return "tool_calls" if self._call and reason == "stop" else reason

    def _logprobs(self, tokens: Sequence[ReportedToken]) -> dict[str, Any]:
        """Return the log probabilities of a streamed piece."""
        if self._is_chat:
            return self._in_chat(tokens)
        logprobs = self._in_text(tokens, self._offset)
        self._offset += sum(map(len, logprobs["tokens"]))
        return logprobs

    def _choice(
        self, number: int, conversation: Conversation, text: str, reason: Reason, echo: bool
    ) -> dict[str, Any]:
        """Return one choice of a response body without streaming."""
        logprobs = None
        if conversation.sampling.logprobs is not None:
            tokens = conversation.reported
            logprobs = self._in_chat(tokens) if self._is_chat else self._in_text(tokens, 0)
        if echo:
            prompt = conversation.ids[: conversation.prompt]
            text = self._tokenizer.decode(prompt, skip_special_tokens=False) + text
        answer: dict[str, Any] = {"text": text}
        if self._is_chat:
            answer = {"message": {"role": "assistant", "content": text, "refusal": None}}
        if self._call:
            answer["message"] |= {"content": None, "tool_calls": [self._called(text)]}
        ended = self._ended(reason)
        return {"index": number, **answer, "logprobs": logprobs, "finish_reason": ended}

    def _in_chat(self, tokens: Sequence[ReportedToken]) -> dict[str, Any]:
        """Return the log probabilities of a chat's answer."""
        content = []
        for token in tokens:
            entry = self._chat_token(token.token, token.logprob)
            entry["top_logprobs"] = [self._chat_token(likely, value) for likely, value in token.top]
            content.append(entry)
        return {"content": content}

    def _chat_token(self, token: int, logprob: float | None) -> dict[str, Any]:
        text = self._word(token)
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

    def _in_text(self, tokens: Sequence[ReportedToken], offset: int) -> dict[str, Any]:
        """Return the log probabilities of a text completion.

        offset: the number of characters before these tokens.
        """
        words: list[str] = []
        offsets: list[int] = []
        tops: list[dict[str, float] | None] = []
        for token in tokens:
            offsets.append(offset)
            words.append(self._word(token.token))
            offset += len(words[-1])
            top = None
            if token.logprob is not None:
                top = {self._word(likely): value for likely, value in token.top}
            tops.append(top)
        return {
            "tokens": words,
            "token_logprobs": [token.logprob for token in tokens],
            "top_logprobs": tops,
            "text_offset": offsets,
        }

    def _word(self, token: int) -> str:
        word: str = self._tokenizer.decode([token], skip_special_tokens=False)
        return word


def usage_of(conversation: Conversation, written_tokens: int) -> dict[str, Any]:
    """Return the token counts of a conversation with `written_tokens` tokens in its answer."""
    return _usage(conversation.prompt, written_tokens, conversation.cached)


def _usage(prompt: int, written_tokens: int, cached_tokens: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written_tokens,
        "total_tokens": prompt + written_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }

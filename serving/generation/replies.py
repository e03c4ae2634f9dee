"""Build responses in OpenAI's format."""

import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import orjson
from tokenizers import Tokenizer

from serving.errors import ServingError
from serving.generation.conversation import Conversation, EndReason, Piece, ReportedToken

DONE_EVENT = b"data: [DONE]\n\n"
UsageReporting = Literal["never", "last", "always"]
"""When a stream reports the token counts."""


def build_openai_error(error: ServingError) -> dict[str, Any]:
    """Return an error in the format that OpenAI's clients read."""
    is_client_error = error.status < 500
    return {
        "error": {
            "message": str(error),
            "type": "invalid_request_error" if is_client_error else "server_error",
            "param": next(iter(error.fields), None),
            "code": error.code,
        }
    }


def build_event(value: Any) -> bytes:
    """Return a value as one server-sent event."""
    return b"data: %b\n\n" % orjson.dumps(value)


class Reply:
    """A builder of the responses to one request.

    kind: `chat.completion` or `text_completion`. call: the name of the function whose arguments are
    the answer; "" if the answer is a text.
    """

    def __init__(
        self, kind: str, model: str, fingerprint: str, tokenizer: Tokenizer, call: str = ""
    ) -> None:
        """Prepare the id, the time and the other values that all parts of the response share."""
        self._is_chat, self._tokenizer = kind == "chat.completion", tokenizer
        self._object, self._offset_chars = kind, 0  # characters of the tokens told so far
        self._call, self._call_id = call, f"call_{secrets.token_hex(12)}"
        prefix = "chatcmpl" if self._is_chat else "cmpl"
        self._common_fields = {
            "id": f"{prefix}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": fingerprint,
        }

    def build_body(
        self, answers: Sequence[tuple[Conversation, str, EndReason]], is_prompt_reported: bool
    ) -> dict[str, Any]:
        """Return the body of a response that is not streamed.

        answers: each conversation with its text and the reason why it ended. is_prompt_reported:
        whether to repeat the prompt before each text.
        """
        choices = []
        prompt = completion = cached_tokens = 0
        for number, (conversation, text, reason) in enumerate(answers):
            choices.append(
                self._build_choice(number, conversation, text, reason, is_prompt_reported)
            )
            prompt += conversation.prompt_token_count
            completion += conversation.answer_token_count
            cached_tokens += conversation.cached_token_count
        usage = _build_usage(prompt, completion, cached_tokens)
        return {**self._common_fields, "object": self._object, "choices": choices, "usage": usage}

    def build_first_events(self) -> Iterator[bytes]:
        """Yield the event that begins a stream, if the format has one."""
        if self._call:
            calls = [{"index": 0, **self._build_call("")}]
            delta = {"role": "assistant", "content": None, "tool_calls": calls}
            yield self._build_chunk({"delta": delta}, None)
        elif self._is_chat:
            yield self._build_chunk({"delta": {"role": "assistant", "content": ""}}, None)

    def build_piece_events(
        self, piece: Piece, usage: dict[str, Any] | None = None
    ) -> Iterator[bytes]:
        """Yield the events for a piece, each with `usage`."""
        logprobs = self._build_logprobs(piece.reported) if piece.reported else None
        if piece.text:
            yield self._build_chunk(
                {**self._build_delta(piece.text), "logprobs": logprobs}, None, usage
            )
            logprobs = None
        if piece.reason:
            end: dict[str, Any] = {"delta": {}} if self._is_chat else {"text": ""}
            yield self._build_chunk({**end, "logprobs": logprobs}, piece.reason, usage)

    def build_last_events(
        self, conversation: Conversation, usage_reports: UsageReporting
    ) -> Iterator[bytes]:
        """Yield the events that end a stream.

        These are the token counts, unless `usage_reports` is "never", and the end mark.
        """
        if usage_reports != "never":
            yield self._build_usage_event(conversation)
        yield DONE_EVENT

    def build_error_event(self, error: ServingError) -> bytes:
        """Return the event for an error after the stream has begun."""
        return build_event(build_openai_error(error))

    def _build_usage_event(self, conversation: Conversation) -> bytes:
        """Return the event that reports the token counts."""
        head = {**self._common_fields, "object": self._stream_object}
        usage = count_usage(conversation, conversation.answer_token_count)
        return build_event({**head, "choices": [], "usage": usage})

    @property
    def _stream_object(self) -> str:
        return f"{self._object}.chunk" if self._is_chat else self._object

    def _build_chunk(
        self,
        choice_fields: dict[str, Any],
        reason: EndReason | None,
        usage: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {
            "index": 0,
            "logprobs": None,
            **choice_fields,
            "finish_reason": self._get_end_reason(reason),
        }
        chunk = {**self._common_fields, "object": self._stream_object, "choices": [choice]}
        if usage is not None:
            chunk["usage"] = usage
        return build_event(chunk)

    def _build_delta(self, text: str) -> dict[str, Any]:
        """Return the part of a streamed event that adds a text to the answer."""
        if self._call:
            return {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}}
        if self._is_chat:
            return {"delta": {"content": text}}
        return {"text": text}

    def _build_call(self, arguments: str) -> dict[str, Any]:
        function = {"name": self._call, "arguments": arguments}
        return {"id": self._call_id, "type": "function", "function": function}

    def _get_end_reason(self, reason: EndReason | None) -> str | None:
        # A call that was cut off for its length ends like a text, so that clients notice.
        return "tool_calls" if self._call and reason == "stop" else reason

    def _build_logprobs(self, tokens: Sequence[ReportedToken]) -> dict[str, Any]:
        """Return the log probabilities of a streamed piece."""
        if self._is_chat:
            return self._build_chat_logprobs(tokens)
        logprobs = self._build_text_logprobs(tokens, self._offset_chars)
        self._offset_chars += sum(map(len, logprobs["tokens"]))
        return logprobs

    def _build_choice(
        self,
        number: int,
        conversation: Conversation,
        text: str,
        reason: EndReason,
        is_prompt_reported: bool,
    ) -> dict[str, Any]:
        """Return one choice of a response that is not streamed."""
        logprobs = None
        if conversation.sampling.logprobs is not None:
            tokens = conversation.reported
            logprobs = (
                self._build_chat_logprobs(tokens)
                if self._is_chat
                else self._build_text_logprobs(tokens, 0)
            )
        if is_prompt_reported:
            prompt = conversation.ids[: conversation.prompt_token_count]
            # `echo`: with special tokens, as these were part of the prompt.
            text = self._tokenizer.decode(prompt, skip_special_tokens=False) + text
        answer: dict[str, Any] = {"text": text}
        if self._is_chat:
            answer = {"message": {"role": "assistant", "content": text, "refusal": None}}
        if self._call:
            answer["message"] |= {"content": None, "tool_calls": [self._build_call(text)]}
        finish_reason = self._get_end_reason(reason)
        return {"index": number, **answer, "logprobs": logprobs, "finish_reason": finish_reason}

    def _build_chat_logprobs(self, tokens: Sequence[ReportedToken]) -> dict[str, Any]:
        """Return the log probabilities of a chat's answer."""
        content = []
        for token in tokens:
            entry = self._build_chat_token(token.token, token.logprob)
            entry["top_logprobs"] = [
                self._build_chat_token(likely, value) for likely, value in token.top
            ]
            content.append(entry)
        return {"content": content}

    def _build_chat_token(self, token: int, logprob: float | None) -> dict[str, Any]:
        text = self._get_word(token)
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

    def _build_text_logprobs(self, tokens: Sequence[ReportedToken], offset: int) -> dict[str, Any]:
        """Return the log probabilities of a text completion.

        offset: the number of characters before these tokens.
        """
        words: list[str] = []
        offsets: list[int] = []
        top_logprobs: list[dict[str, float] | None] = []
        for token in tokens:
            offsets.append(offset)
            words.append(self._get_word(token.token))
            offset += len(words[-1])
            top = None
            if token.logprob is not None:
                top = {self._get_word(likely): value for likely, value in token.top}
            top_logprobs.append(top)
        return {
            "tokens": words,
            "token_logprobs": [token.logprob for token in tokens],
            "top_logprobs": top_logprobs,
            "text_offset": offsets,
        }

    def _get_word(self, token: int) -> str:
        word: str = self._tokenizer.decode([token], skip_special_tokens=False)
        return word


def count_usage(conversation: Conversation, written_tokens: int) -> dict[str, Any]:
    """Return the token counts of a conversation with `written_tokens` tokens in its answer."""
    return _build_usage(
        conversation.prompt_token_count, written_tokens, conversation.cached_token_count
    )


def _build_usage(prompt: int, written_tokens: int, cached_tokens: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written_tokens,
        "total_tokens": prompt + written_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }

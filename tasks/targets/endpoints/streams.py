"""Read a chat model's streamed answer: server-sent events of /chat/completions or /responses."""

import re
from collections.abc import Callable
from typing import Any

from tasks.targets.endpoints.answer_reader import split_thoughts
from tasks.targets.endpoints.answers import expect_object, parse_strict_json
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.completions import THOUGHT_KEYS, build_reported_error, extract_text
from tasks.targets.endpoints.responses import (
    LAST_EVENTS,
    convert_report,
    convert_response,
    find_finish_reason,
    is_response,
)

TextCallback = Callable[[str], None]
"""A function that is called with the text so far, each time it has grown."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of UTF-8, before the first line
DONE_LINE = b"data: [DONE]"
_LINE_END_PATTERN = re.compile(rb"\r\n|\n|\r")
_FIELD_PATTERN = re.compile(
    rb"(?:data|event|id|retry)?:"
)  # a stream begins with one, JSON does not


class StreamAssembler:
    """An assembler of a streamed answer, in either protocol. `answer` is a chat completion.

    Reasoning is not passed to `on_text`. Comments and events of other kinds are ignored.
    """

    def __init__(self, on_text: TextCallback) -> None:
        self._on_text, self._incomplete_line, self.text = on_text, b"", ""
        self._last_text = ""
        self._finish: Any = None
        self._refusal = ""
        self._has_thought = self._is_done = False
        self.reported_fields: dict[str, Any] = {}
        self.has_begun = False

    def feed(self, chunk: bytes) -> None:
        """Process bytes of the body. Raises EndpointError."""
        # A chunk may end within a line, which the next one completes.
        *lines, self._incomplete_line = _LINE_END_PATTERN.split(self._incomplete_line + chunk)
        for line in lines:
            field, _, data = line.removeprefix(BYTE_ORDER_MARK).partition(b":")
            data = data.strip()
            if field != b"data" or not data or data.startswith(b":"):
                continue  # some gateways put a server's comments into events of their own
            if data == b"[DONE]":
                self._is_done = True
            else:
                self._read_event(expect_object(parse_strict_json(data), "An event"))

    def _read_event(self, event: dict[str, Any]) -> None:
        self.has_begun = True
        if event.get("error"):
            raise build_reported_error(event["error"], 200)
        kind = event.get("type")
        if isinstance(kind, str) and (kind == "error" or kind.startswith("response.")):
            self._read_response_event(kind, event)
            return
        reported_keys = (
            "model",
            "system_fingerprint",
            "usage",
        )  # the last event alone tells the tokens
        for key in reported_keys:
            if event.get(key) is not None:
                self.reported_fields[key] = event[key]
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices:
            return
        choice = expect_object(choices[0], "A choice")
        self._finish = choice.get("finish_reason") or self._finish
        delta = expect_object(choice.get("delta") or {}, "A delta")
        self._has_thought = self._has_thought or any(delta.get(name) for name in THOUGHT_KEYS)
        if isinstance(delta.get("refusal"), str):
            self._refusal += delta["refusal"]
        self._add_text(extract_text(delta.get("content")))

    def _read_response_event(self, kind: str, event: dict[str, Any]) -> None:
        """Process an event of /responses. Types that say nothing of the answer are ignored."""
        if kind == "error":  # its message stands beside the type
            raise build_reported_error(event, 200)
        if kind == "response.output_text.delta":
            self._add_text(str(event.get("delta") or ""))
        elif kind == "response.refusal.delta":
            self._refusal += str(event.get("delta") or "")
        elif kind.startswith("response.reasoning"):
            self._has_thought = True
        elif kind in LAST_EVENTS:
            self._read_last_event(expect_object(event.get("response"), "A response"))

    def _read_last_event(self, response: dict[str, Any]) -> None:
        if response.get("error"):
            raise build_reported_error(response["error"], 200)
        self.reported_fields |= convert_report(response)
        self._finish = find_finish_reason(response)
        # A server that streams no pieces of text still sends the whole at the end.
        if not self.text and response.get("output"):
            self._add_text(convert_response(response)["choices"][0]["message"]["content"])

    def _add_text(self, text: str) -> None:
        if text:
            self.text += text
            self._report_text()

    def _report_text(self) -> None:
        """Pass the text without reasoning to `on_text`, if it has changed."""
        text = split_thoughts(self.text).text
        # While a model thinks the text stays the same, and nobody is told.
        if text != self._last_text:
            self._last_text = text
            self._on_text(text)

    @property
    def answer(self) -> dict[str, Any]:
        """Return the whole answer. Raises EndpointError if the stream broke off.

        Some servers send no finish reason but only an end event, or end without a line break.
        """
        try:
            # Some servers end the last line with the stream.
            self.feed(b"\n")
        except EndpointError as error:
            if error.reason != "rubbish":  # half an event: it broke off
                raise
        if self._finish is None and not self._is_done:
            raise EndpointError("The target's answer broke off.", reason="down")
        message = {"content": self.text, "refusal": self._refusal}
        if self._has_thought:
            message["reasoning"] = "…"
        choice = {"message": message, "finish_reason": self._finish or "stop"}
        return {**self.reported_fields, "choices": [choice]}


def parse_completion(body: bytes) -> Any:
    """Return the completion in a body that was requested without streaming. Raises EndpointError.

    Some servers always stream, or end every body as they end streams.
    """
    text = body.removeprefix(BYTE_ORDER_MARK).strip()
    if not _FIELD_PATTERN.match(text):
        answer = parse_strict_json(text.removesuffix(DONE_LINE))
        if isinstance(answer, dict) and is_response(answer):
            return convert_response(answer)
        return answer
    deltas = StreamAssembler(lambda _text: None)
    deltas.feed(text)
    return deltas.answer

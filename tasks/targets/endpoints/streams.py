"""A chat model's answer as it comes: server-sent events of /chat/completions."""

import re
from collections.abc import Callable
from typing import Any

from tasks.targets.endpoints.answer_reader import without_thoughts
from tasks.targets.endpoints.answers import expect_object, strict_json
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.completions import THOUGHT_KEYS, build_reported_error, extract_text

Heard = Callable[[str], None]
"""Called with the text so far, each time that there is more of it."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of UTF-8, before the first line
DONE_LINE = b"data: [DONE]"
_LINE_ENDS = re.compile(rb"\r\n|\n|\r")
_FIELD = re.compile(rb"(?:data|event|id|retry)?:")  # a stream begins with one, JSON does not


class Deltas:
    """An assembler of a streamed answer; `answer` has the form of an answer that was not streamed.

    Reasoning is not passed to `heard`. Comments and events of other kinds are ignored.
    """

    def __init__(self, heard: Heard) -> None:
        self._heard, self._rest, self.text = heard, b"", ""
        self._heard_text = ""
        self._finish: Any = None
        self._refusal = ""
        self._has_thought = self._is_done = False
        self.reported: dict[str, Any] = {}
        self.has_begun = False

    def feed(self, chunk: bytes) -> None:
        """Process bytes of the body. Raises EndpointError."""
        # A chunk may end within a line, which the next one completes.
        *lines, self._rest = _LINE_ENDS.split(self._rest + chunk)
        for line in lines:
            field, _, data = line.removeprefix(BYTE_ORDER_MARK).partition(b":")
            data = data.strip()
            if field != b"data" or not data or data.startswith(b":"):
                continue  # some gateways put a server's comments into events of their own
            if data == b"[DONE]":
                self._is_done = True
            else:
                self._read_event(expect_object(strict_json(data), "An event"))

    def _read_event(self, event: dict[str, Any]) -> None:
        self.has_begun = True
        if event.get("error"):
            raise build_reported_error(event["error"], 200)
        reported_keys = (
            "model",
            "system_fingerprint",
            "usage",
        )  # the last event alone tells the tokens
        for key in reported_keys:
            if event.get(key) is not None:
                self.reported[key] = event[key]
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices:
            return
        choice = expect_object(choices[0], "A choice")
        self._finish = choice.get("finish_reason") or self._finish
        delta = expect_object(choice.get("delta") or {}, "A delta")
        self._has_thought = self._has_thought or any(delta.get(name) for name in THOUGHT_KEYS)
        if isinstance(delta.get("refusal"), str):
            self._refusal += delta["refusal"]
        if more := extract_text(delta.get("content")):
            self.text += more
            self._report_text()

    def _report_text(self) -> None:
        """Pass new text that is not reasoning to `heard`."""
        text = without_thoughts(self.text).text
        # While a model thinks the text stays the same, and nobody is told.
        if text != self._heard_text:
            self._heard_text = text
            self._heard(text)

    @property
    def answer(self) -> dict[str, Any]:
        """Return the whole answer. Raises EndpointError if the stream broke off.

        Some servers give no finish reason but only an end event, or end without a line break.
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
        return {**self.reported, "choices": [choice]}


def parse_completion(body: bytes) -> Any:
    """Return the completion in a body that was requested without streaming. Raises EndpointError.

    Some servers always stream, or end every body as they end streams.
    """
    text = body.removeprefix(BYTE_ORDER_MARK).strip()
    if not _FIELD.match(text):
        return strict_json(text.removesuffix(DONE_LINE))
    deltas = Deltas(lambda _text: None)
    deltas.feed(text)
    return deltas.answer

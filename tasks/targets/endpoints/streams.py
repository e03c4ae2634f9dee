"""A chat model's answer as it comes: server-sent events of /chat/completions."""

from collections.abc import Callable
from typing import Any

from tasks.targets.endpoints.answers import members, strict_json
from tasks.targets.endpoints.base import EndpointError, rubbish

Heard = Callable[[str], None]
"""Called with the text so far, each time that there is more of it."""


class Deltas:
    """Puts together what arrives; `answer` is then what a server answers that does not stream."""

    def __init__(self, heard: Heard) -> None:
        self._heard, self._rest, self.text = heard, b"", ""
        self._finish: Any = None
        self.told: dict[str, Any] = {}
        self.has_begun = False

    def feed(self, part: bytes) -> None:
        """Take bytes of the body. Raises EndpointError."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            data = line.strip().removeprefix(b"data:").strip()
            if line.startswith(b"data:") and data != b"[DONE]":
                self._take(members(strict_json(data), "An event"))

    def _take(self, event: dict[str, Any]) -> None:
        self.has_begun = True
        if event.get("error"):
            raise EndpointError("The target failed while it answered.", reason="down")
        told = ("model", "system_fingerprint", "usage")  # the last event alone tells the tokens
        self.told |= {key: event[key] for key in told if event.get(key) is not None}
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices:
            return
        choice = members(choices[0], "A choice")
        self._finish = choice.get("finish_reason") or self._finish
        more = members(choice.get("delta") or {}, "A delta").get("content")
        if more is not None and not isinstance(more, str):
            raise rubbish("A delta has no text.")
        if more:
            self.text += more
            self._heard(self.text)

    @property
    def answer(self) -> dict[str, Any]:
        """The answer in one piece. Raises EndpointError when it broke off."""
        if self._finish is None:
            raise EndpointError("The target's answer broke off.", reason="down")
        choice = {"message": {"content": self.text}, "finish_reason": self._finish}
        return {**self.told, "choices": [choice]}

"""Lines that a program in a container writes to ask the models. Pure.

Each is a JSON object with one key: `{"ask": {…}}` for a text that only measures, or
`{"propose": {…}}` for one that becomes an example if it fools the models.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.targets.endpoints.answers import parse_strict_json
from tasks.targets.endpoints.base import EndpointError

ASK, PROPOSE = "ask", "propose"
MAX_TEXT_CHARS = 20_000
MAX_STEP_CHARS = 200
MAX_LABEL_CHARS = 200
TEXT_LIMITS: Mapping[str, int] = {
    "text": MAX_TEXT_CHARS,
    "label": MAX_LABEL_CHARS,
    "step": MAX_STEP_CHARS,
}
"""The greatest number of characters of each field that is a text."""
LINE_SHAPE = 'Write {"ask": {…}} or {"propose": {…}}'


class LineError(ValueError):
    """Raised if a line is no message at all, so the program doesn't know the protocol."""


class QuestionError(ValueError):
    """Raised if a question can't be asked. field: what is wrong; the program may go on."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class ContainerQuestion:
    """A text about which a program asks. context: the id of the text that it is about, or None."""

    text: str
    label: str
    step: str = ""
    context: int | None = None
    is_offered: bool = False


def read_question(line: bytes) -> ContainerQuestion:
    """Return the question of a line. Raises LineError and QuestionError.

    >>> read_question(b'{"propose": {"text": "Not bad.", "label": "positive"}}').is_offered
    True
    """
    try:
        message = parse_strict_json(line)
    except EndpointError as error:
        reason = str(error).replace("The answer", "it")
        raise LineError(f"{reason} {LINE_SHAPE}, and everything else to standard error.") from None
    if not isinstance(message, dict) or len(message) != 1:
        raise LineError(f"it isn't an object with one key. {LINE_SHAPE}.")
    [(name, fields)] = message.items()
    if name not in (ASK, PROPOSE) or not isinstance(fields, dict):
        raise LineError(f"it isn't a question. {LINE_SHAPE}.")
    return _read_fields(fields, is_offered=name == PROPOSE)


def _read_fields(fields: Mapping[str, Any], *, is_offered: bool) -> ContainerQuestion:
    """Return a question with these fields. Raises QuestionError."""
    # A cost or a score that a program reports counts for nothing, so it is told at once.
    for name in sorted(fields.keys() - {*TEXT_LIMITS, "context"}):
        raise QuestionError(name[:50], "A question has only text, label, step and context.")
    for name, limit in TEXT_LIMITS.items():
        value = fields.get(name, "")
        if not isinstance(value, str) or len(value) > limit:
            raise QuestionError(name, f"Give a text of at most {limit} characters.")
    for name in ("text", "label"):
        if not fields.get(name):
            raise QuestionError(name, "Give a text.")
    context = fields.get("context")
    # In Python, True is an integer, too.
    if isinstance(context, bool) or not (context is None or isinstance(context, int)):
        raise QuestionError("context", "Give the id of one of the run's contexts.")
    return ContainerQuestion(**fields, is_offered=is_offered)

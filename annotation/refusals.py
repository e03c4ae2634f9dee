"""Refusals when people write or judge, each with its HTTP status and code."""

from annotation.models import Example
from core.errors import Refused


class NotAllowed(Refused):
    """Raised for an action that is forbidden to the person, or no longer possible."""

    status = 403


class RoundClosed(Refused):
    """Raised when the round's state does not allow examples."""

    status = 410
    code = "round_closed"


class NoContext(Refused):
    """Raised when no context is left. The page shows it as a notice, not as an error."""

    code = "no_context"


class StaleForm(Refused):
    """Raised for a form that belongs to an earlier assignment or state."""

    code = "stale"


class InvalidTurn(Refused):
    """Raised for a text that cannot be the next turn of a conversation."""

    status = 422
    code = "unsaid"


class CapReached(Refused):
    """Raised when a cap of the context, the day or the round is reached."""

    status = 429
    code = "cap"


class DuplicateExample(Refused):
    """Raised for a text that the annotator wrote before.

    example: the stored example with the text, or None.
    """

    status = 422
    code = "duplicate"

    def __init__(self, message: str, example: Example | None = None) -> None:
        super().__init__(message)
        self.example = example


class UnsupportedField(NotAllowed):
    """Raised when the task has a field that pages do not support yet."""

    code = "unfinished"


class ProgramsRefused(NotAllowed):
    """Raised when a program works in a task that admits only people."""

    code = "programs"

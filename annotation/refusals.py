"""Refusals when people write or judge, each with its HTTP status and code."""

from annotation.models import Example
from core.errors import Refused


class NotAllowed(Refused):
    """Refusal of something that the person may not do, or no longer."""

    status = 403


class RoundClosed(Refused):
    """Refusal of an example that the round does not take in its state."""

    status = 410
    code = "round_closed"


class NoContext(Refused):
    """Refusal because no context is left. The page shows it as a notice and not as an error."""

    code = "no_context"


class Stale(Refused):
    """Refusal of a form of an assignment or goal that the person has left."""

    code = "stale"


class Unsaid(Refused):
    """Refusal of a turn that cannot be said in the conversation."""

    status = 422
    code = "unsaid"


class CapReached(Refused):
    """Refusal because a cap is reached: of the context, the day or the round."""

    status = 429
    code = "cap"


class Duplicate(Refused):
    """Refusal of a text that the annotator wrote before; `example`: where it is stored."""

    status = 422
    code = "duplicate"

    def __init__(self, message: str, example: Example | None = None) -> None:
        super().__init__(message)
        self.example = example


class Unfinished(NotAllowed):
    """Refusal because the task has a field that does not work yet."""

    code = "unfinished"


class ForPeople(NotAllowed):
    """Refusal of a program where the task admits only people."""

    code = "programs"

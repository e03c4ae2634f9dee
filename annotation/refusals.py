"""What people are refused when they write or judge, each with its HTTP status and its code."""

from annotation.models import Example
from core.errors import Refused


class NotAllowed(Refused):
    """This person may not do this, or not any more."""

    status = 403


class RoundClosed(Refused):
    """The round does not take examples now."""

    status = 410
    code = "round_closed"


class NoContext(Refused):
    """Nothing to write about is left. No error on the page, where nothing is wrong then."""

    code = "no_context"


class Stale(Refused):
    """The form belongs to an assignment or a goal that was left."""

    code = "stale"


class Unsaid(Refused):
    """A turn of a conversation that cannot be said."""

    status = 422
    code = "unsaid"


class CapReached(Refused):
    """Enough for this context, for today or in this round."""

    status = 429
    code = "cap"


class Duplicate(Refused):
    """The annotator wrote this text before, in `example` where it is stored."""

    status = 422
    code = "duplicate"

    def __init__(self, message: str, example: Example | None = None) -> None:
        super().__init__(message)
        self.example = example


class Unfinished(NotAllowed):
    """The task has a field that does not work yet."""

    code = "unfinished"


class ForPeople(NotAllowed):
    """The task lets people do this, and no program."""

    code = "programs"

"""Errors of the model server, each with an HTTP status."""

from collections.abc import Mapping


class ServingError(Exception):
    """Base class of errors with an HTTP status. `fields` maps field names to error messages."""

    status = 500
    code = "error"

    def __init__(self, message: str, *, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.fields = dict(fields or {})


class BadRequestError(ServingError):
    """Raised if a request is invalid. `fields` names the field."""

    status = 400
    code = "invalid"


class TooLongError(BadRequestError):
    """Raised if a prompt is too long for the model. OpenAI's clients know its code."""

    code = "context_length_exceeded"


def build_wrong_field_error(name: str, message: str) -> BadRequestError:
    """Return the error for one field. The message continues after the field's name."""
    return BadRequestError(f"{name} {message}", fields={name: message})


class ForbiddenError(ServingError):
    """Raised if a call lacks the proof that it comes from the site, where that is required."""

    status = 403
    code = "forbidden"


class NotFoundError(ServingError):
    """Raised for a model or route that does not exist."""

    status = 404
    code = "not_found"


class UnknownModelError(NotFoundError):
    """Raised if a model does not exist. OpenAI's clients know its code."""

    code = "model_not_found"


class WrongMethodError(ServingError):
    """Raised if the route exists only for another method."""

    status = 405
    code = "method_not_allowed"


class TooLargeError(ServingError):
    """Raised if the body or the number of inputs exceeds the limit."""

    status = 413
    code = "too_large"


class MisconfiguredError(ServingError):
    """Raised if the model's folder or settings cannot be served; retrying does not help."""

    status = 500
    code = "misconfigured"


class CannotExportError(MisconfiguredError):
    """Raised if the model runs correctly with torch but not with ONNX Runtime."""

    def __init__(self, name: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"{name}: it cannot run in ONNX Runtime ({reason}). Serve it with the backend torch "
            "(--backend torch)."
        )


class TryLaterError(ServingError):
    """Base class of errors after which the same call may succeed in `retry_after` seconds."""

    status = 503
    retry_after = 1


class BusyError(TryLaterError):
    """Raised if the queue is full."""

    code = "busy"


class LoadingError(TryLaterError):
    """Raised while the model is being loaded."""

    code = "loading"
    retry_after = 2


class ModelListUnavailableError(LoadingError):
    """Raised if the list of models cannot be read, for example in an outage of the database."""


class StoppedError(TryLaterError):
    """Raised while the server is stopping."""

    code = "stopping"


class DeadlineError(ServingError):
    """Raised if the caller's deadline passed before the model answered."""

    status = 504
    code = "deadline"


def get_first_line(error: Exception) -> str:
    """Return the first line of a library's message, shortened to 200 characters."""
    # Some libraries raise errors without a message.
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200].rstrip(" .") + "."

"""What the model server answers when it cannot answer."""

from collections.abc import Mapping


class ServingError(Exception):
    """An error with its HTTP status; `fields` maps a field's name to what is wrong with it."""

    status = 500
    code = "error"

    def __init__(self, message: str, *, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.fields = dict(fields or {})


class BadRequestError(ServingError):
    """The request cannot be understood; it names the field."""

    status = 400
    code = "invalid"


class TooLongError(BadRequestError):
    """The prompt does not fit into the model, by the code that OpenAI's clients know."""

    code = "context_length_exceeded"


def wrong_field(name: str, message: str) -> BadRequestError:
    """Return the error for one field; the message continues after the field's name."""
    return BadRequestError(f"{name} {message}", fields={name: message})


class ForbiddenError(ServingError):
    """Nothing proves that the site asks, where only the site may."""

    status = 403
    code = "forbidden"


class UnknownError(ServingError):
    """No such model or route."""

    status = 404
    code = "not_found"


class UnknownModelError(UnknownError):
    """No model of this name, by the code that OpenAI's clients know."""

    code = "model_not_found"


class WrongMethodError(ServingError):
    """The route exists for another method."""

    status = 405
    code = "method_not_allowed"


class TooLargeError(ServingError):
    """The body or the number of inputs is over the limit."""

    status = 413
    code = "too_large"


class MisconfiguredError(ServingError):
    """The model's folder or its settings cannot be served; repeating the call does not help."""

    status = 500
    code = "misconfigured"


class CannotExportError(MisconfiguredError):
    """ONNX Runtime cannot run the model as transformers does; torch can."""

    def __init__(self, name: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"{name}: it cannot run in ONNX Runtime ({reason}). Serve it with the backend torch "
            "(--backend torch)."
        )


class TryLaterError(ServingError):
    """The same call may succeed after `retry_after` seconds."""

    status = 503
    retry_after = 1


class BusyError(TryLaterError):
    """The queue is full."""

    code = "busy"


class LoadingError(TryLaterError):
    """The model is being loaded."""

    code = "loading"
    retry_after = 2


class NotKnownError(LoadingError):
    """Which models there are cannot be read now, as while the database is away."""


class StoppedError(TryLaterError):
    """The server is stopping."""

    code = "stopping"


class DeadlineError(ServingError):
    """The caller's deadline passed before the model answered."""

    status = 504
    code = "deadline"


def first_words(error: Exception) -> str:
    """Return the first line of what a library raised, cut, so that a cure behind it is read."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200].rstrip(" .") + "."

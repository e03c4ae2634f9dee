"""The exceptions of the client, with the server's messages."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import httpx

Fields = Mapping[str, Sequence[str]]


class DynabenchError(Exception):
    """The base class of the client's errors.

    code: one word for programs. status: the HTTP status, 0 without a response. fields: messages by
    field name.
    """

    def __init__(
        self, message: str, *, code: str = "", status: int = 0, fields: Fields | None = None
    ) -> None:
        """Create an error whose text combines the message with the messages of the fields."""
        self.message, self.code, self.status = message, code, status
        self.fields: Fields = fields or {}
        lines = [message]
        for name, texts in self.fields.items():
            # An error of a single field has its text as message.
            other_texts = [text for text in texts if text != message]
            lines += [f"  {name}: {text}" if name else f"  {text}" for text in other_texts]
        super().__init__("\n".join(lines))


class AuthenticationError(DynabenchError):
    """Raised when the key is missing, unknown, revoked or expired."""


class PermissionDenied(DynabenchError):
    """Raised when the account may not make a request, or its key lacks a scope (code `scope`)."""


class NotFound(DynabenchError):
    """Raised when something does not exist or this account may not see it."""


class Invalid(DynabenchError):
    """Raised for invalid input; `fields` says what to change."""


class Refused(DynabenchError):
    """Raised when a rule of the platform refuses a request, such as writing in a closed round."""


class QuotaReached(Refused):
    """Raised when today's quota of submissions is used up.

    The message says when the next one is allowed.
    """


class RateLimited(DynabenchError):
    """Raised after too many requests, if the required wait is too long for the client to retry.

    retry_after: that wait in seconds.
    """

    retry_after: float = 0


class ServerError(DynabenchError):
    """Raised when the server fails, or the response is not from a Dynabench server."""


class Unreachable(DynabenchError):
    """Raised when the server does not respond after several tries."""


class TimedOut(DynabenchError, TimeoutError):
    """Raised when a job does not end in time. It continues on the server."""


class Damaged(DynabenchError):
    """Raised when the digest of a downloaded file differs from the announced one."""


class EvaluationFailed(DynabenchError):
    """Raised when a model was not accepted, or none of its evaluations gave a score.

    outcome: one word, such as `oom`, `timeout` or `model_error`. sentence: what happened. limit,
    measured: the exceeded limit and the measured value, as text. log_tail: the last lines that the
    model wrote.
    """

    def __init__(
        self, outcome: str, sentence: str, *, limit: str = "", measured: str = "", log: str = ""
    ) -> None:
        """Create an error whose text combines the sentence, the numbers and the end of the log."""
        self.outcome, self.sentence, self.limit, self.measured = outcome, sentence, limit, measured
        self.log = log
        self.log_tail = "\n".join(log.splitlines()[-20:])
        message = sentence
        if limit and measured:
            message += f" (limit {limit}, measured {measured})"
        if self.log_tail:
            message += f"\nLast lines of its log:\n{self.log_tail}"
        super().__init__(message, code=outcome)


TOO_LARGE_MESSAGE = (
    "A proxy in front of the site rejected this request as too large (413). Ask the site's "
    "operator to allow 32 MiB, as deploy/nginx.conf does. Uploads are sent in parts of up "
    "to 16 MiB."
)
ERRORS_BY_CODE: Mapping[str, type[DynabenchError]] = {"quota": QuotaReached}
"""The exceptions by error code. They take precedence over ERRORS_BY_STATUS."""
ERRORS_BY_STATUS: Mapping[int, type[DynabenchError]] = {
    400: Invalid,
    401: AuthenticationError,
    403: PermissionDenied,
    404: NotFound,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: RateLimited,
}


def build_error(response: httpx.Response) -> DynabenchError:
    """Return the exception that describes an unsuccessful response."""
    status = response.status_code
    problem = _read_problem(response)
    # Redirects are not followed, so that the key reaches no other server.
    if problem is None and status < 400:
        location = response.headers.get("Location", "another address")
        return ServerError(
            f"The server redirects to {location}. Set DYNABENCH_URL to that address.", status=status
        )
    if problem is None:
        # Not an answer of the API: of a proxy in front of the site, or another server.
        name = HTTPStatus(status).phrase if status in set(HTTPStatus) else "unknown"
        message = f"{response.url} answered {status} ({name}) with an unreadable response."
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            message = TOO_LARGE_MESSAGE
        problem = {"message": message, "code": "", "fields": {}}
    default_class = ServerError if status >= 500 else Refused
    # Unknown statuses become refusals, or failures of the server.
    error_class = ERRORS_BY_CODE.get(problem["code"]) or ERRORS_BY_STATUS.get(status, default_class)
    error = error_class(
        problem["message"], code=problem["code"], status=status, fields=problem["fields"]
    )
    if isinstance(error, RateLimited):
        error.retry_after = read_retry_after(response) or 0
    return error


def _read_problem(response: httpx.Response) -> dict[str, Any] | None:
    """Return the error in a response's body, or None if it is not in the API's format."""
    try:
        problem = response.json()["error"]
        return {"message": problem["message"], "code": problem["code"], "fields": problem["fields"]}
    except (ValueError, KeyError, TypeError):
        return None


def read_retry_after(response: httpx.Response) -> float | None:
    """Return the seconds to wait before retrying, or None if the response does not say."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None

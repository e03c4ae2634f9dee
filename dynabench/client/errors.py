"""The exceptions of the client, with the server's own messages."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import httpx

Fields = Mapping[str, Sequence[str]]


class DynabenchError(Exception):
    """The base of all errors of the client.

    code: one word for programs; status: of HTTP, 0 where no answer came; fields: messages by the
    name of the field they are about.
    """

    def __init__(
        self, message: str, *, code: str = "", status: int = 0, fields: Fields | None = None
    ) -> None:
        """Make an error whose text holds the message and those of the fields."""
        self.message, self.code, self.status = message, code, status
        self.fields: Fields = fields or {}
        lines = [message]
        for name, texts in self.fields.items():
            # An error of a single field has its text as message.
            other_texts = [text for text in texts if text != message]
            lines += [f"  {name}: {text}" if name else f"  {text}" for text in other_texts]
        super().__init__("\n".join(lines))


class AuthenticationError(DynabenchError):
    """The lack of a key, or one that is unknown, revoked or has expired."""


class PermissionDenied(DynabenchError):
    """A request that this account may not make, or whose key lacks a scope (code `scope`)."""


class NotFound(DynabenchError):
    """Something that does not exist, or that this account may not see."""


class Invalid(DynabenchError):
    """Invalid input; `fields` says what to change."""


class Refused(DynabenchError):
    """A refusal by a rule of the platform, such as of work in a closed round."""


class QuotaReached(Refused):
    """The end of today's models; the message says when the next one is allowed."""


class RateLimited(DynabenchError):
    """Too many requests, with a longer wait (`retry_after`, in seconds) than the client's."""

    retry_after: float = 0


class ServerError(DynabenchError):
    """A failure of the server, or an answer that is none of a Dynabench server."""


class Unreachable(DynabenchError):
    """The lack of an answer, after several tries."""


class TimedOut(DynabenchError, TimeoutError):
    """Work that did not end in time. It continues at the server."""


class Damaged(DynabenchError):
    """A downloaded file whose digest is not the announced one."""


class EvaluationFailed(DynabenchError):
    """The failure of a model that was not accepted, or none of whose evaluations gave a score.

    outcome: one word, such as `oom`, `timeout` or `model_error`; sentence: what happened; limit and
    measured: of what was too much, as text; log_tail: the last lines that the model wrote.
    """

    def __init__(
        self, outcome: str, sentence: str, *, limit: str = "", measured: str = "", log: str = ""
    ) -> None:
        """Make an error whose text holds the sentence, the numbers and the end of the log."""
        self.outcome, self.sentence, self.limit, self.measured = outcome, sentence, limit, measured
        self.log = log
        self.log_tail = "\n".join(log.splitlines()[-20:])
        message = sentence
        if limit and measured:
            message += f" (limit {limit}, measured {measured})"
        if self.log_tail:
            message += f"\nThe end of its log:\n{self.log_tail}"
        super().__init__(message, code=outcome)


TOO_LARGE = (
    "A proxy in front of the site takes no request of this size (413), so it never arrived. Ask "
    "who runs the site to let the proxy take 32 MiB, as deploy/nginx.conf does. Pieces of uploads "
    "have up to 16 MiB."
)
BY_CODE: Mapping[str, type[DynabenchError]] = {"quota": QuotaReached}
"""Exceptions by the code of an error, which goes before its status."""
BY_STATUS: Mapping[int, type[DynabenchError]] = {
    400: Invalid,
    401: AuthenticationError,
    403: PermissionDenied,
    404: NotFound,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: RateLimited,
}


def error_of(response: httpx.Response) -> DynabenchError:
    """Return the exception for an answer that is not one of success."""
    status = response.status_code
    problem = _problem_of(response)
    # Redirects are not followed, so that the key reaches no other server.
    if problem is None and status < 400:
        where = response.headers.get("Location", "another address")
        return ServerError(f"The server sends us on to {where}: set DYNABENCH_URL.", status=status)
    if problem is None:
        # Not an answer of the API: of a proxy in front of the site, or another server.
        name = HTTPStatus(status).phrase if status in set(HTTPStatus) else "unknown"
        message = f"{response.url} answered {status} ({name}) and nothing that we understand."
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            message = TOO_LARGE
        problem = {"message": message, "code": "", "fields": {}}
    default = ServerError if status >= 500 else Refused
    # Unknown statuses become refusals, or failures of the server.
    kind = BY_CODE.get(problem["code"]) or BY_STATUS.get(status, default)
    error = kind(problem["message"], code=problem["code"], status=status, fields=problem["fields"])
    if isinstance(error, RateLimited):
        error.retry_after = retry_after(response) or 0
    return error


def _problem_of(response: httpx.Response) -> dict[str, Any] | None:
    """Return what an answer says in the API's one shape of errors; None for any other shape."""
    try:
        problem = response.json()["error"]
        return {"message": problem["message"], "code": problem["code"], "fields": problem["fields"]}
    except (ValueError, KeyError, TypeError):
        return None


def retry_after(response: httpx.Response) -> float | None:
    """Return the seconds after which to come back; None where an answer does not say them."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None

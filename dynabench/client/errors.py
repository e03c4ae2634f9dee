"""What can go wrong, as exceptions that say it in the server's words."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import httpx

Fields = Mapping[str, Sequence[str]]


class DynabenchError(Exception):
    """The base of all of them.

    code: one word for programs; status: of HTTP, 0 where no answer came; fields: messages by the
    name of the field they are about.
    """

    def __init__(
        self, message: str, *, code: str = "", status: int = 0, fields: Fields | None = None
    ) -> None:
        self.message, self.code, self.status = message, code, status
        self.fields: Fields = fields or {}
        about = [
            f"  {name}: {text}" if name else f"  {text}"
            for name, texts in self.fields.items()
            for text in texts
            if text != message
        ]
        super().__init__("\n".join([message, *about]))


class AuthenticationError(DynabenchError):
    """There is no key, or it is unknown, revoked or has ended."""


class PermissionDenied(DynabenchError):
    """This account may not, or the key lacks a scope (code `scope`)."""


class NotFound(DynabenchError):
    """It is not there, or not for this account."""


class Invalid(DynabenchError):
    """Something told cannot be taken as it is; `fields` says what to mend."""


class Refused(DynabenchError):
    """A rule of the platform says no, such as a round that is closed."""


class QuotaReached(Refused):
    """No more models today; the message says when the next one."""


class RateLimited(DynabenchError):
    """Too many requests, and more seconds (`retry_after`) to wait than the client waits."""

    retry_after: float = 0


class ServerError(DynabenchError):
    """The server failed, or what answers is no Dynabench server."""


class Unreachable(DynabenchError):
    """No answer came, after several tries."""


class TimedOut(DynabenchError, TimeoutError):
    """It was not over when the time was. It goes on at the server."""


class Damaged(DynabenchError):
    """A downloaded file is not the one that was announced."""


class EvaluationFailed(DynabenchError):
    """A model was not accepted, or none of its evaluations gave a score.

    outcome: one word, such as `oom`, `timeout` or `model_error`; sentence: what happened; limit and
    measured: of what was too much, as text; log_tail: the last lines that the model wrote.
    """

    def __init__(
        self, outcome: str, sentence: str, *, limit: str = "", measured: str = "", log: str = ""
    ) -> None:
        self.outcome, self.sentence, self.limit, self.measured = outcome, sentence, limit, measured
        self.log = log
        self.log_tail = "\n".join(log.splitlines()[-20:])
        numbers = f" (limit {limit}, measured {measured})" if limit and measured else ""
        tail = f"\nThe end of its log:\n{self.log_tail}" if self.log_tail else ""
        super().__init__(f"{sentence}{numbers}{tail}", code=outcome)


TOO_LARGE = (
    "A proxy in front of the site takes no request of this size (413), so it never arrived. Ask "
    "who runs the site to let the proxy take 32 MiB, as deploy/nginx.conf does. Pieces of uploads "
    "have up to 16 MiB."
)
BY_CODE: Mapping[str, type[DynabenchError]] = {"quota": QuotaReached}
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
    """The exception for an answer that is none of success."""
    status = response.status_code
    problem = _problem_of(response)
    if problem is None and status < 400:
        where = response.headers.get("Location", "another address")
        return ServerError(f"The server sends us on to {where}: set DYNABENCH_URL.", status=status)
    if problem is None:
        name = HTTPStatus(status).phrase if status in set(HTTPStatus) else "unknown"
        message = f"{response.url} answered {status} ({name}) and nothing that we understand."
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            message = TOO_LARGE
        problem = {"message": message, "code": "", "fields": {}}
    default = ServerError if status >= 500 else Refused
    kind = BY_CODE.get(problem["code"]) or BY_STATUS.get(status, default)
    error = kind(problem["message"], code=problem["code"], status=status, fields=problem["fields"])
    if isinstance(error, RateLimited):
        error.retry_after = retry_after(response) or 0
    return error


def _problem_of(response: httpx.Response) -> dict[str, Any] | None:
    """What an answer in the API's one shape of errors says."""
    try:
        problem = response.json()["error"]
        return {"message": problem["message"], "code": problem["code"], "fields": problem["fields"]}
    except (ValueError, KeyError, TypeError):
        return None


def retry_after(response: httpx.Response) -> float | None:
    """The seconds after which to come back, where an answer says them."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None

"""Log lines as JSON, with the request that they are of."""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from django.utils.crypto import salted_hmac

current: ContextVar[HttpRequest | None] = ContextVar("current", default=None)
"""The request that this thread answers, or works for."""


class JsonLines(logging.Formatter):
    """A log formatter that writes one JSON object per line.

    It has time, level, logger and message; within a request also the request's id, the task's code
    and the person's pseudonym, a hash with the site's key.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without a line break."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_of(current.get()),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _of(request: HttpRequest | None) -> dict[str, str]:
    """Return what is known about the request so far, without querying the database."""
    if request is None:
        return {}
    context = {"request": request.id}  # type: ignore[attr-defined]
    user = getattr(request, "_cached_user", None)  # set once somebody has asked who it is
    if user is not None and user.is_authenticated:
        context["user"] = pseudonym(user.pk)
    match = request.resolver_match
    if match and "code" in match.kwargs:
        context["task"] = match.kwargs["code"]
    return context


def pseudonym(pk: int) -> str:
    """Return the hash that identifies a person in logs.

    It is the same on all servers, and meaningless without the key.
    """
    return salted_hmac("dynabench.log", str(pk), algorithm="sha256").hexdigest()[:16]

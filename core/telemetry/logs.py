"""Write log lines as JSON, with the request that caused them."""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from django.utils.crypto import salted_hmac

current_request: ContextVar[HttpRequest | None] = ContextVar("current", default=None)
"""The request that this thread is answering or working for."""


class JsonLines(logging.Formatter):
    """A log formatter that writes one JSON object per line.

    It contains the time, level, logger and message; within a request also the request's id, the
    task's code, and the person's pseudonym, which is a hash with the site's key.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a JSON object on one line."""
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_describe_request(current_request.get()),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def _describe_request(request: HttpRequest | None) -> dict[str, str]:
    """Return the request's id, task and person as far as known, without a database query."""
    if request is None:
        return {}
    context = {"request": request.id}  # type: ignore[attr-defined]
    user = getattr(request, "_cached_user", None)  # set once somebody has asked who it is
    if user is not None and user.is_authenticated:
        context["user"] = build_pseudonym(user.pk)
    # None until the URL is resolved, as while middleware refuses.
    match = request.resolver_match
    if match and "code" in match.kwargs:
        context["task"] = match.kwargs["code"]
    return context


def build_pseudonym(pk: int) -> str:
    """Return the hash that identifies a person in logs. pk: the user's id.

    It is the same on all servers, and meaningless without the key.
    """
    return salted_hmac("dynabench.log", str(pk), algorithm="sha256").hexdigest()[:16]

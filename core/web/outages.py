"""What is down when a request fails: it is named, answered with 503 and logged in one line."""

import errno
import logging
import re
from collections.abc import Mapping
from typing import NamedTuple

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader

from core.errors import Unavailable

LOCKED = re.compile(r"\b(dead)?lock|is locked")
FULL = re.compile(r"disk is full|No space left")
UNWRITABLE = re.compile(r"readonly database|disk I/O error")


class Outage(NamedTuple):
    """An unavailable or overloaded part of the site. code: a word for programs."""

    code: str
    message: str
    wait_seconds: int
    status: int = 503


BUSY = Outage("busy", "The site is busy. Try again in a few seconds.", 3)
DATABASE = Outage("database", "The database does not answer. Try again in a few seconds.", 5)
DAMAGED_FILE = Outage(
    "file", "A stored file is missing or damaged. The site's operator has to restore it.", 3600
)
FULL_DISK = Outage("disk", "The site's disk is full. Try again later.", 600, 507)
CLOSED_DISK = Outage("disk", "The site cannot store anything at present. Try again later.", 60)
BY_NUMBER = {
    errno.ENOSPC: FULL_DISK,
    errno.EDQUOT: FULL_DISK,
    errno.EROFS: CLOSED_DISK,
    errno.EACCES: CLOSED_DISK,
    errno.EIO: DAMAGED_FILE,
}


def outage_of(error: BaseException | None) -> Outage | None:
    """Return the outage that caused an error; None if the error is a bug."""
    text = str(error)
    if isinstance(error, Unavailable):
        return Outage(error.code, str(error), error.wait, error.status)
    if isinstance(error, OSError):
        return BY_NUMBER.get(error.errno or 0)
    if isinstance(error, InterfaceError):
        return DATABASE if "closed" in text else None
    if not isinstance(error, OperationalError):
        return None
    if FULL.search(text):
        return FULL_DISK
    if UNWRITABLE.search(text):
        return CLOSED_DISK
    return BUSY if LOCKED.search(text) else DATABASE


def unavailable(request: HttpRequest, error: BaseException | None) -> HttpResponse | None:
    """Return the response that names the unavailable part; None if `outage_of` finds none.

    Makes no database query.
    """
    outage = outage_of(error)
    if outage is None:
        return None
    response: HttpResponse
    if request.path.startswith("/api/"):
        response = api_error(outage.code, outage.message, outage.status)
    elif not request.accepts("text/html"):  # a script of ours
        response = JsonResponse({"error": outage.message}, status=outage.status)
    else:
        is_part = request.headers.get("HX-Request") == "true"
        template = "busy.html" if is_part else "unavailable.html"
        # Without the request, for which context processors would ask the database.
        page = loader.render_to_string(template, {"outage": outage})
        response = HttpResponse(page, status=outage.status)
    response["Retry-After"] = str(outage.wait_seconds)
    note_reason(response, outage, error)
    return response


def api_error(
    code: str, message: str, status: int, headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """Return an error in the API's format, for code outside `core.web.api`."""
    error = {"code": code, "message": message, "fields": {}}
    return JsonResponse({"error": error}, status=status, headers=headers)


def note_reason(response: HttpResponse, outage: Outage, error: BaseException | None) -> None:
    """Store the reason for the one line that `dynabench.middleware.request_id` logs."""
    first_line = next(iter(str(error).splitlines()), "")
    response.reason_logged = f"{outage.code}: {first_line}"  # type: ignore[attr-defined]


class OneLine(logging.Filter):
    """A log filter that reduces errors which are not ours to one line.

    Refusals (4xx, and what Django calls suspicious, such as a wrong Host or admin filter) become
    warnings without a traceback. Outages are dropped, because another line reports them.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log the record; remove the traceback from that of a refusal."""
        status: int = getattr(record, "status_code", 0)
        is_request = record.name == "django.request"
        if record.name.startswith("django.security.") or (is_request and 400 <= status < 500):
            record.exc_info = record.exc_text = None
            record.levelno = min(record.levelno, logging.WARNING)
            record.levelname = logging.getLevelName(record.levelno)
        return not (is_request and status in (503, 507))

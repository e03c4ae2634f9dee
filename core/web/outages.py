"""Respond with 503 and the unavailable part of the site if a request fails; log one line."""

import errno
import logging
import re
from collections.abc import Mapping
from typing import NamedTuple

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader

from core.errors import Unavailable

LOCKED_PATTERN = re.compile(r"\b(dead)?lock|is locked")
FULL_PATTERN = re.compile(r"disk is full|No space left")
UNWRITABLE_PATTERN = re.compile(r"readonly database|disk I/O error")


class Outage(NamedTuple):
    """An unavailable or overloaded part of the site.

    code: a word for programs. message: for people. wait_seconds: when to try again. status: of the
    response.
    """

    code: str
    message: str
    wait_seconds: int
    status: int = 503


BUSY_OUTAGE = Outage("busy", "The site is busy. Try again in a few seconds.", 3)
DATABASE_OUTAGE = Outage("database", "The database does not answer. Try again in a few seconds.", 5)
DAMAGED_FILE_OUTAGE = Outage(
    "file", "A stored file is missing or damaged. The site's operator has to restore it.", 3600
)
FULL_DISK_OUTAGE = Outage("disk", "The site's disk is full. Try again later.", 600, 507)
UNWRITABLE_DISK_OUTAGE = Outage(
    "disk", "The site cannot store anything right now. Try again later.", 60
)
OUTAGE_BY_ERROR_NUMBER = {
    errno.ENOSPC: FULL_DISK_OUTAGE,
    errno.EDQUOT: FULL_DISK_OUTAGE,
    errno.EROFS: UNWRITABLE_DISK_OUTAGE,
    errno.EACCES: UNWRITABLE_DISK_OUTAGE,
    errno.EIO: DAMAGED_FILE_OUTAGE,
}


def find_outage(error: BaseException | None) -> Outage | None:
    """Return the outage that caused an error; None if the error is a bug."""
    text = str(error)
    if isinstance(error, Unavailable):
        return Outage(error.code, str(error), error.wait, error.status)
    if isinstance(error, OSError):
        return OUTAGE_BY_ERROR_NUMBER.get(error.errno or 0)
    if isinstance(error, InterfaceError):
        return DATABASE_OUTAGE if "closed" in text else None
    if not isinstance(error, OperationalError):
        return None
    if FULL_PATTERN.search(text):
        return FULL_DISK_OUTAGE
    if UNWRITABLE_PATTERN.search(text):
        return UNWRITABLE_DISK_OUTAGE
    return BUSY_OUTAGE if LOCKED_PATTERN.search(text) else DATABASE_OUTAGE


def respond_unavailable(request: HttpRequest, error: BaseException | None) -> HttpResponse | None:
    """Return the response that names the unavailable part; None if the error is not an outage.

    Makes no database query.
    """
    outage = find_outage(error)
    if outage is None:
        return None
    response: HttpResponse
    if request.path.startswith("/api/"):
        response = respond_api_error(outage.code, outage.message, outage.status)
    elif not request.accepts("text/html"):  # a script of ours
        response = JsonResponse({"error": outage.message}, status=outage.status)
    else:
        is_part = request.headers.get("HX-Request") == "true"
        template = "busy.html" if is_part else "unavailable.html"
        # Without the request, for which context processors would ask the database.
        page = loader.render_to_string(template, {"outage": outage})
        response = HttpResponse(page, status=outage.status)
    response["Retry-After"] = str(outage.wait_seconds)
    store_reason(response, outage, error)
    return response


def respond_api_error(
    code: str, message: str, status: int, headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """Return an error in the API's format, for code outside `core.web.api`."""
    error = {"code": code, "message": message, "fields": {}}
    return JsonResponse({"error": error}, status=status, headers=headers)


def store_reason(response: HttpResponse, outage: Outage, error: BaseException | None) -> None:
    """Store an outage's code and error on the response, from which the middleware logs them."""
    first_line = next(iter(str(error).splitlines()), "")
    response.reason_logged = f"{outage.code}: {first_line}"  # type: ignore[attr-defined]


class OneLineFilter(logging.Filter):
    """A log filter that reduces errors that are not our bugs to one line.

    Refusals (4xx, and what Django calls suspicious, such as a wrong Host or admin filter) become
    warnings without a traceback. Outages are dropped, because another line reports them.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log the record. Turn refusals into warnings without a traceback."""
        status: int = getattr(record, "status_code", 0)
        is_request = record.name == "django.request"
        if record.name.startswith("django.security.") or (is_request and 400 <= status < 500):
            record.exc_info = record.exc_text = None
            record.levelno = min(record.levelno, logging.WARNING)
            record.levelname = logging.getLevelName(record.levelno)
        return not (is_request and status in (503, 507))

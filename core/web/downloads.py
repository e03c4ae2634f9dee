"""Files for people to keep: an attachment, a CSV table, JSON lines, a part of a stored file."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, Any, TypeVar

from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    JsonResponse,
    StreamingHttpResponse,
)
from django.utils.http import content_disposition_header, quote_etag

from core.files.tables import csv_text
from core.web.outages import api_error

RANGE = re.compile(r"bytes=(\d+)-(\d*)$")
BLOCK = 2**16
T = TypeVar("T")
OCTETS = "application/octet-stream"  # not guessed by the name: the schema says it of every file


def attachment(text: str, file_name: str, kind: str) -> HttpResponse:
    """Return a text as a file download. kind: its media type."""
    return HttpResponse(text, content_type=f"{kind}; charset=utf-8", headers=_named(file_name))


def csv_file(rows: Iterable[Iterable[Any]], file_name: str) -> HttpResponse:
    """Return a table as a CSV file. The first row contains the column names."""
    return attachment(csv_text(rows), file_name, "text/csv")


def lines(
    rows: Iterable[bytes | str], file_name: str, kind: str = "application/jsonl"
) -> StreamingHttpResponse:
    """Return a streaming response of JSON lines, or of another kind.

    The first line is produced here, so that the request can be answered with an error if its
    source is unavailable.
    """
    return StreamingHttpResponse(_begun(rows), content_type=kind, headers=_named(file_name))


def _begun(rows: Iterable[T]) -> Iterator[T]:
    """Return an iterator over the rows, whose first row is produced now."""
    remaining_rows = iter(rows)
    first_rows = [*islice(remaining_rows, 1)]

    def all_rows() -> Iterator[T]:
        yield from first_rows
        yield from remaining_rows

    return all_rows()


def file_part(
    request: HttpRequest, file: IO[bytes], size: int, file_name: str, sha256: str
) -> JsonResponse | FileResponse | StreamingHttpResponse:
    """Return a file, or the requested part of it (`Range: bytes=N-`, RFC 9110, 14).

    Its ETag is its digest. If `If-Range` has another one, return the whole file.
    """
    etag = quote_etag(sha256)
    headers = {"ETag": etag, "Accept-Ranges": "bytes", "X-Content-SHA256": sha256}
    range_match = RANGE.match(request.headers.get("Range", ""))
    # Several ranges at once, or those that count from the end, get the whole file, as RFC 9110
    # allows.
    if not range_match or request.headers.get("If-Range", etag) != etag:
        return FileResponse(
            file, as_attachment=True, filename=file_name, headers=headers, content_type=OCTETS
        )
    first_byte, last_byte = int(range_match[1]), min(int(range_match[2] or size - 1), size - 1)
    if first_byte > last_byte:
        headers["Content-Range"] = f"bytes */{size}"
        return api_error("range", f"The file has {size} bytes.", 416, headers)
    file.seek(first_byte)
    headers |= {
        "Content-Range": f"bytes {first_byte}-{last_byte}/{size}",
        "Content-Length": str(last_byte - first_byte + 1),
        **_named(file_name),
    }
    rest = _part(file, last_byte - first_byte + 1)
    return StreamingHttpResponse(rest, status=206, headers=headers, content_type=OCTETS)


def _part(file: IO[bytes], remaining_bytes: int) -> Iterator[bytes]:
    with file:
        while remaining_bytes and (block := file.read(min(BLOCK, remaining_bytes))):
            remaining_bytes -= len(block)
            yield block


def _named(file_name: str) -> dict[str, str]:
    return {"Content-Disposition": content_disposition_header(True, file_name) or ""}

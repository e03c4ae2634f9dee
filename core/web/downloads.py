"""Responses with files to download: attachments, CSV tables, JSON lines, parts of stored files."""

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

from core.files.tables import build_csv_text
from core.web.outages import respond_api_error

RANGE_PATTERN = re.compile(r"bytes=(\d+)-(\d*)$")
BLOCK_BYTES = 2**16
T = TypeVar("T")
BINARY_TYPE = (
    "application/octet-stream"  # not guessed by the name: the schema says it of every file
)


def respond_with_attachment(text: str, file_name: str, media_type: str) -> HttpResponse:
    """Return a text as a file download in UTF-8. media_type: its type, without a charset."""
    return HttpResponse(
        text, content_type=f"{media_type}; charset=utf-8", headers=_build_name_headers(file_name)
    )


def respond_with_csv(rows: Iterable[Iterable[Any]], file_name: str) -> HttpResponse:
    """Return a table as a CSV file for spreadsheets, with formulas neutralised.

    rows: the first row has the column names.
    """
    return respond_with_attachment(build_csv_text(rows), file_name, "text/csv")


def respond_with_lines(
    rows: Iterable[bytes | str], file_name: str, media_type: str = "application/jsonl"
) -> StreamingHttpResponse:
    """Return a streaming file download of JSON lines, or of another `media_type`.

    The first line is produced here, so that the response can still be an error if the source is
    unavailable.
    """
    return StreamingHttpResponse(
        _join_rows(_begin_rows(rows)),
        content_type=media_type,
        headers=_build_name_headers(file_name),
    )


def _begin_rows(rows: Iterable[T]) -> Iterator[T]:
    """Return an iterator over the rows, after producing the first row immediately."""
    remaining_rows = iter(rows)
    first_rows = [*islice(remaining_rows, 1)]

    def all_rows() -> Iterator[T]:
        yield from first_rows
        yield from remaining_rows

    return all_rows()


def _join_rows(rows: Iterable[bytes | str]) -> Iterator[bytes]:
    """Yield the rows in UTF-8, in blocks of about BLOCK_BYTES.

    Each block that a response yields costs server and client a call of the system or several.
    """
    block: list[bytes] = []
    size = 0
    for row in rows:
        block.append(row.encode() if isinstance(row, str) else row)
        size += len(block[-1])
        if size >= BLOCK_BYTES:
            yield b"".join(block)
            block, size = [], 0
    if block:
        yield b"".join(block)


def respond_with_file_part(
    request: HttpRequest, file: IO[bytes], size: int, file_name: str, sha256: str
) -> JsonResponse | FileResponse | StreamingHttpResponse:
    """Return a file, or its requested part (`Range: bytes=N-` or `bytes=N-M`, RFC 9110, 14).

    The ETag is the file's digest. Returns the whole file if `If-Range` has a different ETag.
    Returns status 416 if the range lies outside the file.
    """
    etag = quote_etag(sha256)
    headers = {"ETag": etag, "Accept-Ranges": "bytes", "X-Content-SHA256": sha256}
    range_match = RANGE_PATTERN.match(request.headers.get("Range", ""))
    # Several ranges at once, or those that count from the end, get the whole file, as RFC 9110
    # allows.
    if not range_match or request.headers.get("If-Range", etag) != etag:
        return FileResponse(
            file, as_attachment=True, filename=file_name, headers=headers, content_type=BINARY_TYPE
        )
    first_byte, last_byte = int(range_match[1]), min(int(range_match[2] or size - 1), size - 1)
    # Such as a client that resumes a file which is complete already.
    if first_byte > last_byte:
        headers["Content-Range"] = f"bytes */{size}"
        return respond_api_error("range", f"The file has {size} bytes.", 416, headers)
    file.seek(first_byte)
    headers |= {
        "Content-Range": f"bytes {first_byte}-{last_byte}/{size}",
        "Content-Length": str(last_byte - first_byte + 1),
        **_build_name_headers(file_name),
    }
    body = _iterate_part(file, last_byte - first_byte + 1)
    return StreamingHttpResponse(body, status=206, headers=headers, content_type=BINARY_TYPE)


def _iterate_part(file: IO[bytes], remaining_bytes: int) -> Iterator[bytes]:
    # Unlike `FileResponse`, a plain streaming response closes no file.
    with file:
        while remaining_bytes and (block := file.read(min(BLOCK_BYTES, remaining_bytes))):
            remaining_bytes -= len(block)
            yield block


def _build_name_headers(file_name: str) -> dict[str, str]:
    return {"Content-Disposition": content_disposition_header(True, file_name) or ""}

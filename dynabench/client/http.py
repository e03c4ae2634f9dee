"""Flows for requests with retries, paged lists, jobs that are polled, and resumable downloads."""

import os
import random
import uuid
from collections.abc import Callable, Mapping
from io import FileIO
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx

from dynabench.client.archive import compute_digest
from dynabench.client.errors import (
    Damaged,
    DynabenchError,
    Refused,
    ServerError,
    TimedOut,
    Unreachable,
    build_error,
    read_retry_after,
)
from dynabench.client.flow import Call, Flow, Pause, Work, method
from dynabench.client.progress import show_bytes, show_lines

T = TypeVar("T")
UNAVAILABLE_STATUSES = (502, 503, 504)
"""The statuses of a server that is restarting or overloaded, or of a proxy that cannot reach it."""
MAX_PAUSE_SECONDS = 120.0
"""The maximum seconds that the client waits when the server asks it to."""
MAX_POLL_SECONDS = 10.0
"""The maximum seconds between two requests for the state of a job."""
MAX_FAILED_POLLS = 10
"""The number of failed polls in a row after which waiting for a job ends."""
SERVER_HINT = "Check the server's URL in DYNABENCH_URL or url=."


def compute_backoff(attempt: int) -> float:
    """Return the seconds before the next try, which double with each try, minus a random part.

    The random part is up to one half, so that clients that failed together do not retry together.
    """
    return float(min(0.5 * 2**attempt, 30) * random.uniform(0.5, 1))


class Requesting:
    """The base class for requests, lists and downloads.

    server: the server's URL. retries: how often to resend a request. progress: whether to show it.
    """

    server: str
    retries: int
    progress: bool

    @method
    def request(
        self, method: str, path: str, json: Any = None, params: Mapping[str, Any] | None = None
    ) -> Flow[Any]:
        """Send a request to any URL of the API; return the JSON of the response, or None.

        method: the HTTP method. path: below /api/v1/, such as `/tasks/nli/`. params: the query. A
        list is returned one page at a time. Retries and raises errors as all methods do.
        """
        return self._write(method, f"/{path.lstrip('/')}", json, params)

    def _send(self, call: Callable[[], Call]) -> Flow[httpx.Response]:
        """Send a request, with retries, and return the successful response.

        call: returns the request for each try. Writes must have an Idempotency-Key, so that they
        can be repeated. Raises DynabenchError.
        """
        for attempt in range(self.retries + 1):
            pause = compute_backoff(attempt)
            try:
                response: httpx.Response = yield call()
            except httpx.TransportError as error:
                reason = f"{self.server} cannot be reached: {error}"
                failure: DynabenchError = Unreachable(f"{reason.rstrip(': ')}. {SERVER_HINT}")
            else:
                if response.is_success:
                    return response
                failure = build_error(response)
                requested_pause = read_retry_after(response)
                if not _is_temporary(failure, requested_pause):
                    raise failure
                if requested_pause is not None:
                    if requested_pause > MAX_PAUSE_SECONDS:
                        raise failure
                    pause = max(pause, requested_pause)
            if attempt < self.retries:
                yield Pause(pause)
        raise failure

    def _get(self, path: str, **params: Any) -> Flow[Any]:
        """Return the JSON at a path. params: the query; None values are left out."""
        query = {name: value for name, value in params.items() if value is not None}
        return _read_json((yield from self._send(lambda: Call("GET", path, query))))

    def _write(
        self,
        verb: str,
        path: str,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        content: bytes | None = None,
    ) -> Flow[Any]:
        """Send a write request with a new Idempotency-Key; return the response's JSON, or None."""
        # One key for all tries: a write whose answer was lost is not carried out twice.
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        if content is not None:
            headers["Content-Type"] = "application/octet-stream"
        call = Call(verb, path, params or {}, json, content, headers)
        return _read_json((yield from self._send(lambda: call)))

    def _iterate_pages(self, path: str, **params: Any) -> Flow[list[Any]]:
        """Return all rows of a list, from all its pages."""
        rows: list[Any] = []
        while True:
            page = yield from self._get(path, **params)
            # Short lists come whole.
            if isinstance(page, list):
                return page
            rows += page["results"]
            if not page["next"]:
                return rows
            # Only the query of the link is used: its host may be another one behind a proxy.
            params |= parse_qs(urlsplit(page["next"]).query)

    def _fetch(
        self, path: str, target: Path, sha256: str | None = None, size: int = 0
    ) -> Flow[None]:
        """Download a file; with a digest, resume an interrupted download.

        size: the file's size in bytes, 0 if unknown. Raises Damaged if the digest differs.

        1. Return at once if the file exists with this digest.
        2. Append to `NAME.part`, which an interrupted download leaves behind (`_fetch_rest`).
        3. Compare the digest, and rename the file.
        """
        if sha256 and target.exists() and (yield Work(lambda: compute_digest(target))) == sha256:
            return
        # Beside the target, so that the last step is a rename on one disk.
        partial_path = target.with_name(f"{target.name}.part")
        partial_path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Unbuffered, because the size of the file tells where an interrupted download goes on.
            with partial_path.open("ab", buffering=0) as file:
                if not sha256:
                    # Without a digest nobody could tell whether its beginning is still the same.
                    file.truncate(0)
                yield from self._fetch_rest(path, file, sha256, size, target.name)
        except DynabenchError:
            # An empty file would only surprise whoever looks into the folder.
            if not partial_path.stat().st_size:  # nothing to go on from
                partial_path.unlink()
            raise
        if sha256:
            digest = yield Work(lambda: compute_digest(partial_path))
            if digest != sha256:
                partial_path.unlink()
                message = f"{target.name} arrived damaged (SHA-256 {digest}). Download it again."
                raise Damaged(message)
        # A file of this name is always whole.
        partial_path.replace(target)

    def _fetch_rest(
        self, path: str, file: FileIO, sha256: str | None, size: int, name: str
    ) -> Flow[None]:
        """Download the missing end of a file. Continue after a lost connection."""

        def build_call() -> Call:
            # Ranges count bytes of the file as it is stored, so it must not be compressed.
            headers = {"Accept-Encoding": "identity"}
            if sha256 and (received_bytes := os.fstat(file.fileno()).st_size):
                headers |= {"Range": f"bytes={received_bytes}-", "If-Range": f'"{sha256}"'}
            return Call("GET", path, headers=headers, open_sink=open_sink)

        def open_sink(response: httpx.Response) -> Callable[[bytes], object]:
            if response.status_code != httpx.codes.PARTIAL_CONTENT:
                # The server sends all of it: its file is another one than that of the first try.
                file.truncate(0)
            show(file.tell())
            return receive_block

        def receive_block(block: bytes) -> None:
            file.write(block)
            show(file.tell())

        received_bytes = os.fstat(file.fileno()).st_size
        with show_bytes(name, size, received_bytes, is_shown=self.progress) as show:
            try:
                if not size or received_bytes != size:
                    yield from self._send(build_call)
            except Refused as error:
                # Nothing after the end of the file: all of it is here, as its digest will say.
                if error.status != httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                    raise


class Polling(Requesting):
    """The base class for methods that wait for a job on the server to end."""

    def _poll_job(
        self,
        fetch_job: Callable[[], Flow[T]],
        describe: Callable[[T], tuple[str, bool]],
        timeout: float | None,
    ) -> Flow[T]:
        """Poll a job until it ends, showing its progress, and return it.

        fetch_job: returns the job. describe: returns (progress as a sentence, whether the job has
        ended). timeout: maximum seconds to wait; None for no limit. Raises TimedOut.
        """
        started_at, failed_polls, pause = monotonic(), 0, 1.0
        with show_lines(is_shown=self.progress) as show_line:
            while True:
                try:
                    job = yield from fetch_job()
                    # Only polls that fail one after the other count.
                    failed_polls = 0
                except (Unreachable, ServerError) as error:
                    # A server that restarts for longer than a request's own retries.
                    failed_polls += 1
                    if failed_polls > MAX_FAILED_POLLS:
                        raise
                    show_line(f"{error.message} Trying again.")
                else:
                    sentence, is_over = describe(job)
                    show_line(sentence)
                    if is_over:
                        return job
                # Including the next pause, so that nobody waits for longer than they said.
                if timeout is not None and monotonic() - started_at + pause > timeout:
                    raise TimedOut(f"Not finished after {timeout:g} seconds. Try again later.")
                yield Pause(pause)
                # Often at first, for jobs of seconds, and rarely for jobs of hours.
                pause = min(pause * 1.5, MAX_POLL_SECONDS)


def _is_temporary(failure: DynabenchError, requested_pause: float | None) -> bool:
    """Return whether a failed request may succeed if repeated.

    requested_pause: the seconds to wait, if the response gives them. A 429 without them is a
    permanent rule, such as a quota. The code `in_progress` means that the client's own earlier try
    is still running.
    """
    if failure.status == httpx.codes.TOO_MANY_REQUESTS:
        return requested_pause is not None
    return failure.status in UNAVAILABLE_STATUSES or failure.code == "in_progress"


def _read_json(response: httpx.Response) -> Any:
    """Return the JSON of a response, or None without a body. Raises ServerError."""
    # Deletions and the like answer nothing.
    if response.status_code == httpx.codes.NO_CONTENT:
        return None
    try:
        return response.json()
    except ValueError:
        raise ServerError(f"{response.url} is not a response of a Dynabench server.") from None

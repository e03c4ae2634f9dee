"""Requests that are tried again, pages and jobs that are followed, files in parts: flows."""

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

from dynabench.client.archive import digest_of
from dynabench.client.errors import (
    Damaged,
    DynabenchError,
    Refused,
    ServerError,
    TimedOut,
    Unreachable,
    error_of,
    retry_after,
)
from dynabench.client.flow import Call, Flow, Pause, Work, method
from dynabench.client.progress import bytes_shown, lines_shown

T = TypeVar("T")
AWAY = (502, 503, 504)
LONGEST_PAUSE = 120.0
LONGEST_LOOK = 10.0
"""Seconds between two looks at what goes on at the server."""
MOST_SILENCE = 10
"""So many times in a row the server may not answer while we wait."""
OTHER_SERVER = "DYNABENCH_URL, or url=, names the server."


def back_off(attempt: int) -> float:
    """Seconds before the next try: twice as many each time, by chance up to half of them less."""
    return float(min(0.5 * 2**attempt, 30) * random.uniform(0.5, 1))


class Asking:
    """What the methods of both clients are made of."""

    server: str
    retries: int
    progress: bool

    @method
    def request(
        self, method: str, path: str, json: Any = None, params: Mapping[str, Any] | None = None
    ) -> Flow[Any]:
        """Ask any address of the API; the JSON that it answers, None where it answers nothing.

        method: of HTTP; path: below /api/v1/, such as `/tasks/nli/`; params: its query. A list
        comes a page at a time. Tries and errors are those of all methods.
        """
        return self._write(method, f"/{path.lstrip('/')}", json, params)

    def _send(self, call: Callable[[], Call]) -> Flow[httpx.Response]:
        """The answer of success, after all tries that are allowed; `call` makes each of them.

        Every write has an Idempotency-Key, so that it may be sent again. Raises DynabenchError.
        """
        for attempt in range(self.retries + 1):
            pause = back_off(attempt)
            try:
                response: httpx.Response = yield call()
            except httpx.TransportError as error:
                reason = f"{self.server} cannot be reached: {error}"
                failure: DynabenchError = Unreachable(f"{reason.rstrip(': ')}. {OTHER_SERVER}")
            else:
                if response.is_success:
                    return response
                failure = error_of(response)
                asked = retry_after(response)
                if not _is_brief(failure, asked) or (asked or 0) > LONGEST_PAUSE:
                    raise failure
                pause = max(pause, asked or 0)
            if attempt < self.retries:
                yield Pause(pause)
        raise failure

    def _get(self, path: str, **params: Any) -> Flow[Any]:
        given = {name: value for name, value in params.items() if value is not None}
        return _data((yield from self._send(lambda: Call("GET", path, given))))

    def _write(
        self,
        verb: str,
        path: str,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        content: bytes | None = None,
    ) -> Flow[Any]:
        """The data of the answer; None where it has none."""
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        if content is not None:
            headers["Content-Type"] = "application/octet-stream"
        call = Call(verb, path, params or {}, json, content, headers)
        return _data((yield from self._send(lambda: call)))

    def _all(self, path: str, **params: Any) -> Flow[list[Any]]:
        """The rows of a list, of all its pages."""
        rows: list[Any] = []
        while True:
            page = yield from self._get(path, **params)
            if isinstance(page, list):
                return page
            rows += page["results"]
            if not page["next"]:
                return rows
            params |= parse_qs(urlsplit(page["next"]).query)

    def _fetch(
        self, path: str, target: Path, sha256: str | None = None, size: int = 0
    ) -> Flow[None]:
        """Download a file. Of one with a digest only what an earlier try left out is asked for.

        size: in bytes, 0 where it is not known. Raises Damaged when the digest is another one.
        """
        if sha256 and target.exists() and (yield Work(lambda: digest_of(target))) == sha256:
            return
        part = target.with_name(f"{target.name}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("ab", buffering=0) as file:
                if not sha256:
                    file.truncate(0)
                yield from self._fetch_rest(path, file, sha256, size, target.name)
        except DynabenchError:
            if not part.stat().st_size:  # nothing to go on from
                part.unlink()
            raise
        if sha256 and (found := (yield Work(lambda: digest_of(part)))) != sha256:
            part.unlink()
            raise Damaged(f"{target.name} arrived damaged (SHA-256 {found}). Download it again.")
        part.replace(target)

    def _fetch_rest(
        self, path: str, file: FileIO, sha256: str | None, size: int, name: str
    ) -> Flow[None]:
        """What is missing at the end of a file; a broken connection goes on where it was."""

        def call() -> Call:
            headers = {"Accept-Encoding": "identity"}
            if sha256 and (here := os.fstat(file.fileno()).st_size):
                headers |= {"Range": f"bytes={here}-", "If-Range": f'"{sha256}"'}
            return Call("GET", path, headers=headers, into=into)

        def into(response: httpx.Response) -> Callable[[bytes], object]:
            if response.status_code != httpx.codes.PARTIAL_CONTENT:
                file.truncate(0)
            show(file.tell())
            return take

        def take(block: bytes) -> None:
            file.write(block)
            show(file.tell())

        here = os.fstat(file.fileno()).st_size
        with bytes_shown(name, size, here, is_shown=self.progress) as show:
            try:
                if not size or here != size:
                    yield from self._send(call)
            except Refused as error:
                if error.status != httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                    raise  # else all of it is here, as its digest will say


class Following(Asking):
    """What asks again until something is over."""

    def _follow(
        self,
        ask: Callable[[], Flow[T]],
        stands: Callable[[T], tuple[str, bool]],
        timeout: float | None,
    ) -> Flow[T]:
        """What `ask` brings once it is over.

        stands: how it stands, as a sentence that is shown, and whether it is over. timeout: seconds
        to wait at most; None: no end. Raises TimedOut.
        """
        begun, silence, pause = monotonic(), 0, 1.0
        with lines_shown(is_shown=self.progress) as tell:
            while True:
                try:
                    found = yield from ask()
                    silence = 0
                except (Unreachable, ServerError) as error:
                    silence += 1
                    if silence > MOST_SILENCE:
                        raise
                    tell(f"{error.message} Trying again.")
                else:
                    sentence, is_over = stands(found)
                    tell(sentence)
                    if is_over:
                        return found
                if timeout is not None and monotonic() - begun + pause > timeout:
                    raise TimedOut(f"Not over after {timeout:g} seconds. Ask for it again later.")
                yield Pause(pause)
                pause = min(pause * 1.5, LONGEST_LOOK)


def _is_brief(failure: DynabenchError, asked: float | None) -> bool:
    """Whether a refusal is of the moment only; asked: for how many seconds to wait.

    A 429 that does not say is a rule that stays; `in_progress` is of our own earlier try.
    """
    if failure.status == httpx.codes.TOO_MANY_REQUESTS:
        return asked is not None
    return failure.status in AWAY or failure.code == "in_progress"


def _data(response: httpx.Response) -> Any:
    """The JSON of an answer; None where there is none. Raises ServerError."""
    if response.status_code == httpx.codes.NO_CONTENT:
        return None
    try:
        return response.json()
    except ValueError:
        raise ServerError(f"{response.url} is none of a Dynabench server.") from None

"""What adapters of targets share that answer JSON over HTTP; errors by HTTP status."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import httpx

from core.telemetry.tracing import carried
from tasks.targets.endpoints.answers import strict_json
from tasks.targets.endpoints.base import (
    EndpointConfig,
    EndpointError,
    EndpointInfo,
    OptionKind,
    Prediction,
    misconfigured,
)
from tasks.targets.endpoints.server_words import concerns_settings, mask_copies, read_message
from tasks.targets.endpoints.transport import (
    RETRY_IDEMPOTENT,
    Clock,
    Reply,
    Retry,
    Transport,
    parse_retry_after,
    parse_url,
)

SHARED_TRANSPORT = Transport()
# A child would share the sockets of its parent, and both would read each other's answers.
os.register_at_fork(after_in_child=SHARED_TRANSPORT.forget)


class JsonEndpoint(ABC):
    """A target below one base URL. Anything but a valid JSON answer raises EndpointError."""

    OPTIONS: ClassVar[Mapping[str, OptionKind]] = {}
    """The options of the adapter, and what each must be."""
    RETRY: ClassVar[Retry] = RETRY_IDEMPOTENT

    def __init__(self, config: EndpointConfig, transport: Transport | None = None) -> None:
        config.check_options(self.OPTIONS)
        self._url = parse_url(config.url)
        secret = config.secret
        # A line break in it would become a header of its own.
        if secret is not None and not (secret.isascii() and secret.isprintable() and secret):
            raise misconfigured("The secret must be printable ASCII, without line breaks.")
        self._config = config
        self._transport = transport or SHARED_TRANSPORT

    @abstractmethod
    def answers(self, inputs: Sequence[Mapping[str, Any]], clock: Clock) -> list[Prediction]:
        """Return a prediction, without seconds, for each of the inputs, in order.

        inputs: at least one.
        """

    @abstractmethod
    def info(self, *, deadline_seconds: float) -> EndpointInfo:
        """Return the target's description of itself. Raises EndpointError."""

    def predict(
        self, batch: Sequence[Mapping[str, Any]], *, deadline_seconds: float
    ) -> list[Prediction]:
        """Return one prediction for each example, in order. Raises EndpointError.

        The duration of the call is divided evenly among the predictions.
        """
        clock = Clock(deadline_seconds)
        inputs = [self._config.select(item) for item in batch]
        with self.telling_no_secret():
            predictions = []
            if inputs:
                predictions = self.answers(inputs, clock)
        # A batch is one call, so nobody knows the time of a single example.
        each = clock.used() / max(1, len(predictions))
        return [replace(prediction, seconds=each) for prediction in predictions]

    def get(self, path: str, clock: Clock) -> Any:
        return strict_json(self.reply("GET", path, None, clock).body)

    def post(self, path: str, payload: Any, clock: Clock) -> Any:
        return strict_json(self.reply("POST", path, payload, clock).body)

    def reply(
        self,
        method: str,
        path: str,
        payload: Any,
        clock: Clock,
        heard: Callable[[bytes], None] | None = None,
    ) -> Reply:
        """Return the successful reply (status 2xx) to a request. Raises EndpointError.

        path: relative to the base URL. heard: as in `Transport.request`.
        """
        prover = self._config.prover
        reply = self._transport.request(
            method,
            append_path(self._url, path),
            seconds=clock.left(),
            max_bytes=self._config.max_response_bytes,
            allowed=self._config.allow_private_hosts,
            secret=self._config.secret,
            payload=payload,
            retry=self.RETRY,
            headers=[*carried(), prover.header()] if prover else (),
            heard=heard,
        )
        if not 200 <= reply.status < 300:
            text = reply.body.decode("utf-8", errors="replace")  # its words are shown to people
            body = mask_copies(self._config.secret, text).encode()
            raise self.failure_of(replace(reply, body=body))
        return reply

    @contextmanager
    def telling_no_secret(self) -> Iterator[None]:
        """Remove the secret from the message of an EndpointError, because servers repeat it."""
        try:
            yield
        except EndpointError as error:
            error.args = (mask_copies(self._config.secret, str(error)),)
            raise

    def failure_of(self, reply: Reply) -> EndpointError:
        """Return the error for a reply with a status other than 2xx."""
        return _build_status_error(reply)


def append_path(url: httpx.URL, path: str) -> httpx.URL:
    """Append a path (already percent-encoded) to the URL. Keeps the query."""
    # On the raw path, since decoding and encoding could change what the owner entered.
    raw, _, query = url.raw_path.partition(b"?")
    raw = raw.rstrip(b"/") + path.encode("ascii") if path else raw
    return url.copy_with(raw_path=raw + b"?" + query if query else raw)


def _build_status_error(reply: Reply) -> EndpointError:
    words, status = read_message(reply.body), reply.status
    quote = "."
    if words:
        quote = f": {words}"
    if status in (429, 503):
        wait = parse_retry_after(reply.headers)
        if status == 429 or wait is not None:
            return EndpointError(f"The target is busy{quote}", reason="busy", retry_after=wait)
    if status == 413:
        return EndpointError(
            f"The text is too long for the target ({status}){quote}", "too_long", permanent=True
        )
    if concerns_settings(words) and status in (400, 404, 422):
        return misconfigured(f"The target did not accept how it is asked ({status}){quote}")
    if status in (400, 422):
        return EndpointError(
            f"The target refused this input ({status}){quote}", reason="refused", permanent=True
        )
    if status in (408, 504):
        return EndpointError(f"The target took too long ({status}){quote}", reason="slow")
    if status >= 500:
        return EndpointError(f"The target failed ({status}){quote}", reason="down")
    if status in (401, 403):
        return misconfigured(f"The target did not accept the secret ({status}){quote}")
    return misconfigured(f"The target answered with status {status}: check the URL{quote}")

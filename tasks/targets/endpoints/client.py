"""Base of adapters for targets that answer JSON over HTTP, with errors by HTTP status."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import httpx

from core.telemetry.tracing import build_trace_headers
from tasks.targets.endpoints.answers import parse_strict_json
from tasks.targets.endpoints.base import (
    EndpointConfig,
    EndpointError,
    EndpointInfo,
    OptionKind,
    Prediction,
    build_misconfigured_error,
)
from tasks.targets.endpoints.server_words import concerns_settings, mask_copies, read_message
from tasks.targets.endpoints.transport import (
    RETRY_IDEMPOTENT,
    Clock,
    Reply,
    RetryPolicy,
    Transport,
    parse_retry_after,
    parse_url,
)

SHARED_TRANSPORT = Transport()
# A child would share the sockets of its parent, and both would read each other's answers.
os.register_at_fork(after_in_child=SHARED_TRANSPORT.drop_connections)


class JsonEndpoint(ABC):
    """A target below one base URL. Anything but a valid JSON answer raises EndpointError."""

    OPTIONS: ClassVar[Mapping[str, OptionKind]] = {}
    """The adapter's options with their types."""
    RETRY: ClassVar[RetryPolicy] = RETRY_IDEMPOTENT

    def __init__(self, config: EndpointConfig, transport: Transport | None = None) -> None:
        config.check_options(self.OPTIONS)
        self._url = parse_url(config.url)
        secret = config.secret
        # A line break in it would become a header of its own.
        if secret is not None and not (secret.isascii() and secret.isprintable() and secret):
            raise build_misconfigured_error(
                "The secret must be printable ASCII, without line breaks."
            )
        self._config = config
        self._transport = transport or SHARED_TRANSPORT

    @abstractmethod
    def answer_inputs(self, inputs: Sequence[Mapping[str, Any]], clock: Clock) -> list[Prediction]:
        """Return a prediction, without seconds, for each of the inputs, in order.

        inputs: at least one. clock: the time left. Raises EndpointError.
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
        inputs = [self._config.select_fields(item) for item in batch]
        with self.hide_secrets():
            predictions = []
            if inputs:
                predictions = self.answer_inputs(inputs, clock)
        # A batch is one call, so nobody knows the time of a single example.
        mean_seconds = clock.get_used_seconds() / max(1, len(predictions))
        return [replace(prediction, seconds=mean_seconds) for prediction in predictions]

    def get(self, path: str, clock: Clock) -> Any:
        return parse_strict_json(self.send_request("GET", path, None, clock).body)

    def post(self, path: str, payload: Any, clock: Clock) -> Any:
        return parse_strict_json(self.send_request("POST", path, payload, clock).body)

    def send_request(
        self,
        method: str,
        path: str,
        payload: Any,
        clock: Clock,
        on_chunk: Callable[[bytes], None] | None = None,
    ) -> Reply:
        """Return the successful reply (status 2xx) to a request. Raises EndpointError.

        path: relative to the base URL. on_chunk: see `Transport.request`.
        """
        prover = self._config.prover
        reply = self._transport.request(
            method,
            append_path(self._url, path),
            seconds=clock.get_remaining_seconds(),
            max_bytes=self._config.max_response_bytes,
            allowed_hosts=self._config.allow_private_hosts,
            secret=self._config.secret,
            payload=payload,
            retry=self.RETRY,
            headers=[*build_trace_headers(), prover.build_header()] if prover else (),
            on_chunk=on_chunk,
        )
        if not 200 <= reply.status < 300:
            text = reply.body.decode("utf-8", errors="replace")  # its words are shown to people
            body = mask_copies(self._config.secret, text).encode()
            raise self.build_failure(replace(reply, body=body))
        return reply

    @contextmanager
    def hide_secrets(self) -> Iterator[None]:
        """Mask the secret in the message of an EndpointError that the `with` block raises.

        Some servers repeat the secret in their messages.
        """
        try:
            yield
        except EndpointError as error:
            error.args = (mask_copies(self._config.secret, str(error)),)
            raise

    def build_failure(self, reply: Reply) -> EndpointError:
        """Return the error for a reply with a status other than 2xx."""
        return _build_status_error(reply)


def append_path(url: httpx.URL, path: str) -> httpx.URL:
    """Return the URL with a percent-encoded path appended. Keeps the query."""
    # On the raw path, since decoding and encoding could change what the owner entered.
    raw_path, _, query = url.raw_path.partition(b"?")
    raw_path = raw_path.rstrip(b"/") + path.encode("ascii") if path else raw_path
    return url.copy_with(raw_path=raw_path + b"?" + query if query else raw_path)


def _build_status_error(reply: Reply) -> EndpointError:
    server_message, status = read_message(reply.body), reply.status
    quote = "."
    if server_message:
        quote = f": {server_message}"
    if status in (429, 503):
        wait = parse_retry_after(reply.headers)
        if status == 429 or wait is not None:
            return EndpointError(f"The target is busy{quote}", reason="busy", retry_after=wait)
    if status == 413:
        return EndpointError(
            f"The text is too long for the target ({status}){quote}", "too_long", is_permanent=True
        )
    if concerns_settings(server_message) and status in (400, 404, 422):
        return build_misconfigured_error(
            f"The target did not accept how it is asked ({status}){quote}"
        )
    if status in (400, 422):
        return EndpointError(
            f"The target refused this input ({status}){quote}", reason="refused", is_permanent=True
        )
    if status in (408, 504):
        return EndpointError(f"The target took too long ({status}){quote}", reason="slow")
    if status >= 500:
        return EndpointError(f"The target failed ({status}){quote}", reason="down")
    if status in (401, 403):
        return build_misconfigured_error(f"The target did not accept the secret ({status}){quote}")
    return build_misconfigured_error(
        f"The target answered with status {status}: check the URL{quote}"
    )

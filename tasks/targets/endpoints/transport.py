"""Guarded HTTP: checked addresses, one deadline per call, size limits, few retries.

Uses httpcore, httpx's connection pool. Its network backend is the only public place where the
address of a connection is decided. So the checked address is also the one that we connect to (no
second DNS look-up). Host, SNI and certificate checks still use the name.
"""

import functools
import ipaddress
import json
import logging
import re
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

import httpcore
import httpx

from tasks.targets.endpoints.addresses import AllowedHosts, is_permitted, is_public
from tasks.targets.endpoints.base import (
    EndpointError,
    build_misconfigured_error,
    build_rubbish_error,
)

logger = logging.getLogger(__name__)

HEADER_BYTES = 16 * 1024
WRITE_BYTES = 16 * 1024
MAX_REDIRECTS = 3
Resolver = Callable[[str, int], Sequence[str]]
Headers = Iterable[tuple[bytes, bytes]]


class Clock:
    """A countdown of the time left for an operation, which may make several calls."""

    def __init__(self, seconds: float) -> None:
        self._started_at, self._seconds = time.monotonic(), seconds

    def get_used_seconds(self) -> float:
        return time.monotonic() - self._started_at

    def get_remaining_seconds(self) -> float:
        """Return the seconds that remain. Raises EndpointError with reason `slow` if none do."""
        left_seconds = self._seconds - self.get_used_seconds()
        if left_seconds <= 0:
            raise EndpointError("The target did not answer in time.", reason="slow")
        return left_seconds


class CallBudget(Clock):
    """The remaining time and number of bytes of a call."""

    def __init__(self, seconds: float, max_bytes: int) -> None:
        super().__init__(seconds)
        self.max_bytes = max_bytes
        self.left_bytes = 0
        self.has_received = False


@dataclass(frozen=True)
class _Call:
    """A request with its destination and the private hosts that it may reach.

    on_chunk: called with each chunk of a successful response.
    """

    method: str
    url: httpx.URL
    allowed_hosts: AllowedHosts
    secret: str | None
    content: bytes
    headers: Headers
    on_chunk: Callable[[bytes], None] | None = None


@dataclass(frozen=True)
class RetryPolicy:
    """The cases in which a call is repeated.

    on_lost_connection: whether to repeat it if the connection failed before the first byte.
    statuses: HTTP statuses after which it is repeated.
    """

    on_lost_connection: bool
    statuses: frozenset[int]


RETRY_IDEMPOTENT = RetryPolicy(on_lost_connection=True, statuses=frozenset({503}))
RETRY_CAREFUL = RetryPolicy(on_lost_connection=False, statuses=frozenset({429, 503}))


@dataclass(frozen=True)
class Reply:
    """A complete response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _ConnectionLost(EndpointError):
    """Raised if the connection failed before the first byte of the response."""


class AnswerBrokenOff(EndpointError):
    """Raised if the connection ended within the response."""


_budget: ContextVar[CallBudget] = ContextVar("budget")


class _Stream(httpcore.NetworkStream):
    """A connection whose waiting time and size are limited to the budget of the running call."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        budget = _budget.get()
        # Counted where bytes arrive: headers and bodies, compressed or not.
        if budget.left_bytes <= 0:
            raise _build_too_large_error(budget.max_bytes)
        data = self._inner.read(min(max_bytes, budget.left_bytes), budget.get_remaining_seconds())
        budget.left_bytes -= len(data)
        budget.has_received = budget.has_received or bool(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # In pieces, so that a server that reads slowly cannot hold the call beyond its time.
        for start in range(0, len(buffer), WRITE_BYTES):
            self._inner.write(
                buffer[start : start + WRITE_BYTES], _budget.get().get_remaining_seconds()
            )

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        seconds = _budget.get().get_remaining_seconds()
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, seconds))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    """A network backend that resolves a name once and connects only to checked addresses."""

    def __init__(
        self,
        resolve: Resolver,
        lookup_pool: ThreadPoolExecutor,
        allowed_hosts: AllowedHosts,
        is_private_only: bool,
    ) -> None:
        self._resolve = resolve
        self._lookup_pool = lookup_pool
        self._allowed_hosts = allowed_hosts
        self._is_private_only = is_private_only
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = self._resolve_addresses(host, port)
        for attempt, address in enumerate(addresses, start=1):
            # The time that is left is shared among the addresses that are left.
            seconds = _budget.get().get_remaining_seconds() / (len(addresses) - attempt + 1)
            try:
                return _Stream(self._inner.connect_tcp(address, port, seconds, local_address, []))
            # Another address may answer, for example where only one of IPv4 and IPv6 works.
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if attempt == len(addresses):
                    raise
        raise AssertionError("an empty list of addresses is refused above")

    def _resolve_addresses(self, host: str, port: int) -> list[str]:
        try:
            # A host may be an address, which is checked like one that a name leads to.
            addresses = [str(ipaddress.ip_address(host))]
        except ValueError:
            addresses = self._look_up_host(host, port)
        for text in addresses:
            address = ipaddress.ip_address(text)
            if self._is_private_only and is_public(address):
                raise build_misconfigured_error(
                    "The secret is only sent over https: change the URL."
                )
            if not is_permitted(host, address, self._allowed_hosts):
                logger.warning("The host %r leads to %s, which is not allowed.", host, text)
                raise build_misconfigured_error(  # the message must not reveal our network
                    f"The host {host!r} leads to what is not a public address; the operator "
                    "of this site can allow it."
                )
        return addresses

    def _look_up_host(self, host: str, port: int) -> list[str]:
        try:
            # In a thread, since the system's resolver has no timeout.
            addresses = self._lookup_pool.submit(self._resolve, host, port).result(
                _budget.get().get_remaining_seconds()
            )
        except TimeoutError:
            raise EndpointError(f"Resolving {host!r} took too long.", reason="slow") from None
        except (OSError, UnicodeError):
            addresses = []
        if not addresses:
            raise EndpointError(f"The host {host!r} cannot be resolved.", reason="down")
        return list(dict.fromkeys(addresses))


def resolve_by_system(host: str, port: int) -> list[str]:
    """Return the addresses of a host name from the system's resolver. Raises OSError."""
    # One type of socket, because each address would otherwise come once per type.
    return [str(row[4][0]) for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


@functools.cache
def _get_default_ssl_context() -> ssl.SSLContext:
    """Return the default SSL context, cached because loading it takes tens of milliseconds.

    SSL_CERT_FILE can name a private certificate authority.
    """
    return httpx.create_ssl_context()


class Transport:
    """A pool of keep-alive connections to targets, one per address policy. Thread-safe."""

    def __init__(
        self, *, resolve: Resolver = resolve_by_system, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._resolve = resolve
        self._ssl_context = ssl_context
        self.drop_connections()

    def drop_connections(self) -> None:
        """Drop all connections without closing them; a forked child must not share sockets."""
        self._lookup_pool = ThreadPoolExecutor(4, "resolve")
        self._pools: dict[tuple[AllowedHosts, bool], httpcore.ConnectionPool] = {}

    def _open_pool(
        self, allowed_hosts: AllowedHosts, is_private_only: bool
    ) -> httpcore.ConnectionPool:
        key = (allowed_hosts, is_private_only)
        if key not in self._pools:
            pool = httpcore.ConnectionPool(
                ssl_context=self._ssl_context or _get_default_ssl_context(),
                max_connections=100,
                max_keepalive_connections=40,
                keepalive_expiry=30,
                network_backend=_Backend(
                    self._resolve, self._lookup_pool, allowed_hosts, is_private_only
                ),
            )
            # Two threads may build a pool at once; both then use the same one.
            self._pools.setdefault(key, pool)
        return self._pools[key]

    def request(
        self,
        method: str,
        url: httpx.URL,
        *,
        seconds: float,
        max_bytes: int,
        allowed_hosts: AllowedHosts,
        secret: str | None,
        payload: Any,
        retry: RetryPolicy,
        headers: Headers = (),
        on_chunk: Callable[[bytes], None] | None = None,
    ) -> Reply:
        """Make one call with at most one retry, all within `seconds`; return the reply.

        payload: encoded as JSON; bytes are sent unchanged. on_chunk: called with each chunk of
        a successful response as it arrives. Raises EndpointError.
        """
        budget = CallBudget(seconds, max_bytes)
        token = _budget.set(budget)
        call = _Call(
            method, url, allowed_hosts, secret, _encode_payload(payload), headers, on_chunk
        )
        try:
            try:
                reply = self._send_following_redirects(call)
            except _ConnectionLost:
                # The server may have acted on a call whose answer was lost, so only some calls are
                # repeated.
                if not retry.on_lost_connection:
                    raise
                return self._send_following_redirects(call)
            wait = parse_retry_after(reply.headers)
            # Only if the server said when, and that is within the time that is left.
            if (
                reply.status in retry.statuses
                and wait is not None
                and wait < budget.get_remaining_seconds()
            ):
                time.sleep(wait)
                return self._send_following_redirects(call)
            return reply
        finally:
            _budget.reset(token)

    def _send_following_redirects(self, call: _Call) -> Reply:
        """Send a call and follow redirects that keep its method and do not leave https.

        The secret is not sent to another origin. Raises EndpointError.
        """
        for _ in range(MAX_REDIRECTS + 1):
            reply = self._send_once(call)
            location = reply.headers.get("location")
            if reply.status not in (301, 302, 303, 307, 308) or location is None:
                return reply
            # The other statuses turn a POST into a GET, and would lose its body.
            if call.method != "GET" and reply.status not in (307, 308):
                raise build_misconfigured_error(
                    f"The target redirects to {location:.200}: name that URL."
                )
            next_url = parse_url(str(_join_url(call.url, location)))
            if call.url.scheme == "https" and next_url.scheme == "http":
                raise build_misconfigured_error("The target redirects from https to http.")
            # The secret belongs to one origin, and so do proofs in headers and a blanket
            # permission.
            if get_origin(next_url) != get_origin(call.url):
                allowed_hosts: AllowedHosts = False
                if isinstance(call.allowed_hosts, tuple):
                    allowed_hosts = call.allowed_hosts
                call = replace(call, secret=None, allowed_hosts=allowed_hosts, headers=())
            call = replace(call, url=next_url)
        raise build_misconfigured_error(f"The target redirects more than {MAX_REDIRECTS} times.")

    def _send_once(self, call: _Call) -> Reply:
        budget, url = _budget.get(), call.url
        budget.left_bytes = budget.max_bytes + HEADER_BYTES
        budget.has_received = False
        target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        # A secret goes unencrypted only to private addresses, which the backend checks.
        has_unencrypted_secret = call.secret is not None and url.scheme == "http"
        try:
            with self._open_pool(call.allowed_hosts, has_unencrypted_secret).stream(
                call.method,
                target,
                headers=_build_headers(call, budget.get_remaining_seconds()) + list(call.headers),
                content=call.content,
                extensions={"timeout": {"pool": budget.get_remaining_seconds()}},
            ) as response:
                return _read_response(response, budget.max_bytes, call.on_chunk)
        except httpcore.PoolTimeout:
            raise EndpointError("All connections are in use.", reason="busy") from None
        except httpcore.TimeoutException:
            raise EndpointError("The target did not answer in time.", reason="slow") from None
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise _build_failure(error, budget.has_received) from error


def _build_failure(error: Exception, has_received: bool) -> Exception:
    """Return the exception to raise for a broken connection.

    has_received: whether a part of the response had arrived.
    """
    if isinstance(error, httpcore.LocalProtocolError):
        return build_misconfigured_error(f"The call cannot be sent: {error}.")
    if has_received and "without sending complete message" in str(error):  # h11's words
        return AnswerBrokenOff("The target's answer broke off.", reason="down")
    if isinstance(error, httpcore.RemoteProtocolError) and has_received:
        return build_rubbish_error(f"The target does not speak HTTP properly: {error}.")
    # httpcore wraps the reason, such as a certificate, so the chain of causes is searched.
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return build_misconfigured_error(
                f"The certificate of the target is not valid: {cause}."
            )
        cause = cause.__cause__ or cause.__context__
    error_class: type[EndpointError] = _ConnectionLost
    if has_received:
        error_class = AnswerBrokenOff
    return error_class(f"The target cannot be reached: {error}.", reason="down")


def _read_response(
    response: httpcore.Response, max_bytes: int, chunk_listener: Callable[[bytes], None] | None
) -> Reply:
    headers = {}
    # Latin-1, because it decodes any byte, and servers may send any.
    for name, value in response.headers:
        headers[name.decode("latin-1").lower()] = value.decode("latin-1")
    # Refused by its announced size where there is one, so that nothing is read in vain.
    length = headers.get("content-length", "")
    # A slice, because Python refuses to convert thousands of digits.
    if length.isdecimal() and int(length[:20]) > max_bytes:
        raise _build_too_large_error(max_bytes)
    decompress = _make_decompressor(headers, max_bytes)
    body = bytearray()
    for chunk in response.iter_stream():
        plain_chunk = decompress(chunk)
        body += plain_chunk
        if len(body) > max_bytes:
            raise _build_too_large_error(max_bytes)
        if chunk_listener and 200 <= response.status < 300:
            chunk_listener(plain_chunk)
    return Reply(response.status, headers, bytes(body))


def _make_decompressor(headers: Mapping[str, str], max_bytes: int) -> Callable[[bytes], bytes]:
    """Return a function that decompresses the chunks of a body, limited to `max_bytes` each.

    Some servers compress although asked not to. The function, like this one, raises EndpointError.
    """
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return bytes
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise build_rubbish_error(f"The target compressed its answer by {encoding:.20}, unasked.")
    decompressor = zlib.decompressobj(wbits=47)  # 32 + 15: gzip or zlib, as the first bytes say

    def decompress(chunk: bytes) -> bytes:
        try:
            expanded_chunk = decompressor.decompress(chunk, max_bytes + 1)
        except zlib.error as error:
            raise build_rubbish_error(
                f"The target's compressed answer is damaged: {error}."
            ) from None
        if decompressor.unconsumed_tail:
            raise _build_too_large_error(max_bytes)
        return expanded_chunk

    return decompress


def _build_too_large_error(max_bytes: int) -> EndpointError:
    return build_rubbish_error(f"The answer is larger than {max_bytes} bytes.")


def _build_headers(call: _Call, seconds: float) -> list[tuple[bytes, bytes]]:
    headers = [
        (b"Host", call.url.netloc),
        (b"Accept", b"application/json"),
        (b"Accept-Encoding", b"identity"),
        (b"User-Agent", b"dynabench"),
        (b"X-Deadline-Seconds", b"%.3f" % min(3600, max(0.001, seconds))),
    ]
    if call.content:
        headers += [(b"Content-Type", b"application/json")]
        headers += [(b"Content-Length", str(len(call.content)).encode())]
    if call.secret is not None:
        headers += [(b"Authorization", b"Bearer " + call.secret.encode("ascii"))]
    return headers


def _encode_payload(payload: Any) -> bytes:
    if payload is None:
        return b""
    if isinstance(payload, bytes):
        return payload
    # JSON has no NaN and no infinity, so a server could not parse them.
    return json.dumps(payload, separators=(",", ":"), allow_nan=False).encode()


def _join_url(url: httpx.URL, location: str) -> httpx.URL:
    try:
        return url.join(location)
    except httpx.InvalidURL as error:
        raise build_misconfigured_error(
            f"The target redirects to an invalid URL: {error}."
        ) from None


def get_origin(url: httpx.URL) -> tuple[str, str, int]:
    """Return the scheme, host and port, with the default port filled in."""
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


def parse_url(text: str) -> httpx.URL:
    """Return a target's URL, parsed. Raises EndpointError with the reason."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise build_misconfigured_error(f"The URL is not valid: {error}.") from None
    if url.scheme not in ("http", "https"):
        raise build_misconfigured_error("The URL must start with http:// or https://.")
    if not url.host:
        raise build_misconfigured_error("The URL has no host.")
    if url.port is not None and not 1 <= url.port <= 65535:
        raise build_misconfigured_error("The port of the URL must lie in 1 to 65535.")
    if url.userinfo:
        raise build_misconfigured_error(
            "The URL must not contain a user name or password. Use the secret."
        )
    # A fragment is never sent to a server, so two URLs that differ in it are the same.
    return url.copy_with(fragment=None)


_NUMBER_PATTERN = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header, a number or an HTTP date; None if there is none.

    Fractions, which gateways send against the standard, are accepted. Azure's header in
    milliseconds is preferred, because it is more precise.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _NUMBER_PATTERN.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    text = headers.get("retry-after", "").strip()
    if _NUMBER_PATTERN.fullmatch(text):
        return float(text)
    try:
        # A date that has passed, as of a server whose clock is slow, means at once.
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None

"""Guarded HTTP: checked addresses, one deadline for everything, capped answers, few retries.

Built on httpcore, httpx's connection pool: its network backend is the one public place where the
address of a connection is decided, so the check and the connection cannot disagree (no second
DNS look-up), while Host, SNI and certificate checks keep the name.
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

from tasks.targets.endpoints.addresses import Allowed, is_permitted, is_public
from tasks.targets.endpoints.base import EndpointError, misconfigured, rubbish

logger = logging.getLogger(__name__)

HEADER_BYTES = 16 * 1024
WRITE_BYTES = 16 * 1024
MAX_REDIRECTS = 3
Resolver = Callable[[str, int], Sequence[str]]
Headers = Iterable[tuple[bytes, bytes]]


class Clock:
    """The remaining time of an operation that may make several calls."""

    def __init__(self, seconds: float) -> None:
        self._started_at, self._seconds = time.monotonic(), seconds

    def used(self) -> float:
        return time.monotonic() - self._started_at

    def left(self) -> float:
        """Return the seconds left. Raises EndpointError(slow) if there are none."""
        left_seconds = self._seconds - self.used()
        if left_seconds <= 0:
            raise EndpointError("The target did not answer in time.", reason="slow")
        return left_seconds


class Budget(Clock):
    """The time and the number of bytes that one call has left."""

    def __init__(self, seconds: float, max_bytes: int) -> None:
        super().__init__(seconds)
        self.max_bytes = max_bytes
        self.left_bytes = 0
        self.received = False


@dataclass(frozen=True)
class _Call:
    """A request, its destination, and the hosts that may answer it."""

    method: str
    url: httpx.URL
    allowed: Allowed
    secret: str | None
    content: bytes
    headers: Headers
    heard: Callable[[bytes], None] | None = None


@dataclass(frozen=True)
class Retry:
    """The cases for a second attempt. lost: the connection failed before the first byte."""

    lost: bool
    statuses: frozenset[int]


RETRY_IDEMPOTENT = Retry(lost=True, statuses=frozenset({503}))
RETRY_CAREFUL = Retry(lost=False, statuses=frozenset({429, 503}))


@dataclass(frozen=True)
class Reply:
    """A complete response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _ConnectionLost(EndpointError):
    """Raised if the connection failed before the first byte of the answer."""


class AnswerBrokenOff(EndpointError):
    """Raised if the connection ended within the answer."""


_budget: ContextVar[Budget] = ContextVar("budget")


class _Stream(httpcore.NetworkStream):
    """A connection whose waits and reads are limited to the budget of the running call."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        budget = _budget.get()
        # Counted where bytes arrive: headers and bodies, compressed or not.
        if budget.left_bytes <= 0:
            raise _too_large(budget.max_bytes)
        data = self._inner.read(min(max_bytes, budget.left_bytes), budget.left())
        budget.left_bytes -= len(data)
        budget.received = budget.received or bool(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # In pieces, so that a server that reads slowly cannot hold the call beyond its time.
        for start in range(0, len(buffer), WRITE_BYTES):
            self._inner.write(buffer[start : start + WRITE_BYTES], _budget.get().left())

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        seconds = _budget.get().left()
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, seconds))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    """A network backend that resolves a name once and connects only to checked addresses."""

    def __init__(
        self, resolve: Resolver, names: ThreadPoolExecutor, allowed: Allowed, private_only: bool
    ) -> None:
        self._resolve = resolve
        self._names = names
        self._allowed = allowed
        self._private_only = private_only
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = self._addresses(host, port)
        for attempt, address in enumerate(addresses, start=1):
            # The time that is left is shared among the addresses that are left.
            seconds = _budget.get().left() / (len(addresses) - attempt + 1)
            try:
                return _Stream(self._inner.connect_tcp(address, port, seconds, local_address, []))
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if attempt == len(addresses):
                    raise
        raise AssertionError("an empty list of addresses is refused above")

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            # A host may be an address, which is checked like one that a name leads to.
            addresses = [str(ipaddress.ip_address(host))]
        except ValueError:
            addresses = self._look_up(host, port)
        for text in addresses:
            address = ipaddress.ip_address(text)
            if self._private_only and is_public(address):
                raise misconfigured("The secret is only sent over https: change the URL.")
            if not is_permitted(host, address, self._allowed):
                logger.warning("The host %r leads to %s, which is not allowed.", host, text)
                raise misconfigured(  # the message must not reveal our network
                    f"The host {host!r} leads to what is not a public address; the operator "
                    "of this site can allow it."
                )
        return addresses

    def _look_up(self, host: str, port: int) -> list[str]:
        try:
            # In a thread, since the system's resolver has no timeout.
            addresses = self._names.submit(self._resolve, host, port).result(_budget.get().left())
        except TimeoutError:
            raise EndpointError(f"Resolving {host!r} took too long.", reason="slow") from None
        except (OSError, UnicodeError):
            addresses = []
        if not addresses:
            raise EndpointError(f"The host {host!r} cannot be resolved.", reason="down")
        return list(dict.fromkeys(addresses))


def system_resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host name from the system's resolver."""
    return [str(row[4][0]) for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


@functools.cache
def _default_ssl_context() -> ssl.SSLContext:
    """Return the default SSL context, cached because loading it takes tens of milliseconds.

    SSL_CERT_FILE can name a private authority.
    """
    return httpx.create_ssl_context()


class Transport:
    """Keep-alive connections to targets, one pool per address policy. Thread-safe."""

    def __init__(
        self, *, resolve: Resolver = system_resolve, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._resolve = resolve
        self._ssl_context = ssl_context
        self.forget()

    def forget(self) -> None:
        """Drop all connections without closing them: a forked child must not share sockets."""
        self._names = ThreadPoolExecutor(4, "resolve")
        self._pools: dict[tuple[Allowed, bool], httpcore.ConnectionPool] = {}

    def _pool(self, allowed: Allowed, private_only: bool) -> httpcore.ConnectionPool:
        key = (allowed, private_only)
        if key not in self._pools:
            pool = httpcore.ConnectionPool(
                ssl_context=self._ssl_context or _default_ssl_context(),
                max_connections=100,
                max_keepalive_connections=40,
                keepalive_expiry=30,
                network_backend=_Backend(self._resolve, self._names, allowed, private_only),
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
        allowed: Allowed,
        secret: str | None,
        payload: Any,
        retry: Retry,
        headers: Headers = (),
        heard: Callable[[bytes], None] | None = None,
    ) -> Reply:
        """Make one call with at most one retry, all within `seconds`. Raises EndpointError.

        payload: encoded as JSON; bytes are sent unchanged. heard: called with each chunk of a
        successful answer as it arrives.
        """
        budget = Budget(seconds, max_bytes)
        token = _budget.set(budget)
        call = _Call(method, url, allowed, secret, _encode(payload), headers, heard)
        try:
            try:
                reply = self._follow(call)
            except _ConnectionLost:
                # The server may have acted on a call whose answer was lost, so only some calls are
                # repeated.
                if not retry.lost:
                    raise
                return self._follow(call)
            wait = parse_retry_after(reply.headers)
            # Only if the server said when, and that is within the time that is left.
            if reply.status in retry.statuses and wait is not None and wait < budget.left():
                time.sleep(wait)
                return self._follow(call)
            return reply
        finally:
            _budget.reset(token)

    def _follow(self, call: _Call) -> Reply:
        """Send a call and follow redirects that keep its method and do not leave https.

        The secret is not sent to another origin. Raises EndpointError(misconfigured).
        """
        for _ in range(MAX_REDIRECTS + 1):
            reply = self._send(call)
            location = reply.headers.get("location")
            if reply.status not in (301, 302, 303, 307, 308) or location is None:
                return reply
            # The other statuses turn a POST into a GET, and would lose its body.
            if call.method != "GET" and reply.status not in (307, 308):
                raise misconfigured(f"The target redirects to {location:.200}: name that URL.")
            next_url = parse_url(str(_join_url(call.url, location)))
            if call.url.scheme == "https" and next_url.scheme == "http":
                raise misconfigured("The target redirects from https to http.")
            # The secret belongs to one origin, and so do proofs in headers and a blanket
            # permission.
            if get_origin(next_url) != get_origin(call.url):
                allowed_hosts: Allowed = False
                if isinstance(call.allowed, tuple):
                    allowed_hosts = call.allowed
                call = replace(call, secret=None, allowed=allowed_hosts, headers=())
            call = replace(call, url=next_url)
        raise misconfigured(f"The target redirects more than {MAX_REDIRECTS} times.")

    def _send(self, call: _Call) -> Reply:
        budget, url = _budget.get(), call.url
        budget.left_bytes = budget.max_bytes + HEADER_BYTES
        budget.received = False
        target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        # A secret goes unencrypted only to private addresses, which the backend checks.
        unencrypted_secret = call.secret is not None and url.scheme == "http"
        try:
            with self._pool(call.allowed, unencrypted_secret).stream(
                call.method,
                target,
                headers=_build_headers(call, budget.left()) + list(call.headers),
                content=call.content,
                extensions={"timeout": {"pool": budget.left()}},
            ) as response:
                return _read_response(response, budget.max_bytes, call.heard)
        except httpcore.PoolTimeout:
            raise EndpointError("All connections are in use.", reason="busy") from None
        except httpcore.TimeoutException:
            raise EndpointError("The target did not answer in time.", reason="slow") from None
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise _build_failure(error, budget.received) from error


def _build_failure(error: Exception, has_received: bool) -> Exception:
    """Return the exception to raise for a broken connection."""
    if isinstance(error, httpcore.LocalProtocolError):
        return misconfigured(f"The call cannot be sent: {error}.")
    if has_received and "without sending complete message" in str(error):  # h11's words
        return AnswerBrokenOff("The target's answer broke off.", reason="down")
    if isinstance(error, httpcore.RemoteProtocolError) and has_received:
        return rubbish(f"The target does not speak HTTP properly: {error}.")
    # httpcore wraps the reason, such as a certificate, so the chain of causes is searched.
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return misconfigured(f"The certificate of the target is not valid: {cause}.")
        cause = cause.__cause__ or cause.__context__
    kind: type[EndpointError] = _ConnectionLost
    if has_received:
        kind = AnswerBrokenOff
    return kind(f"The target cannot be reached: {error}.", reason="down")


def _read_response(
    response: httpcore.Response, max_bytes: int, chunk_listener: Callable[[bytes], None] | None
) -> Reply:
    headers = {}
    for name, value in response.headers:
        headers[name.decode("latin-1").lower()] = value.decode("latin-1")
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > max_bytes:
        raise _too_large(max_bytes)
    expand = _make_expander(headers, max_bytes)
    body = bytearray()
    for sent in response.iter_stream():
        expanded_chunk = expand(sent)
        body += expanded_chunk
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
        if chunk_listener and 200 <= response.status < 300:
            chunk_listener(expanded_chunk)
    return Reply(response.status, headers, bytes(body))


def _make_expander(headers: Mapping[str, str], max_bytes: int) -> Callable[[bytes], bytes]:
    """Return a function that decompresses the chunks of a body, limited to `max_bytes` each.

    Some servers compress although asked not to. Raises EndpointError, as the function does.
    """
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return bytes
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise rubbish(f"The target compressed its answer by {encoding:.20}, unasked.")
    decompressor = zlib.decompressobj(wbits=47)  # 32 + 15: gzip or zlib, as the first bytes say

    def expand(chunk: bytes) -> bytes:
        try:
            expanded_chunk = decompressor.decompress(chunk, max_bytes + 1)
        except zlib.error as error:
            raise rubbish(f"The target's compressed answer is damaged: {error}.") from None
        if decompressor.unconsumed_tail:
            raise _too_large(max_bytes)
        return expanded_chunk

    return expand


def _too_large(max_bytes: int) -> EndpointError:
    return rubbish(f"The answer is larger than {max_bytes} bytes.")


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


def _encode(payload: Any) -> bytes:
    if payload is None:
        return b""
    if isinstance(payload, bytes):
        return payload
    return json.dumps(payload, separators=(",", ":"), allow_nan=False).encode()


def _join_url(url: httpx.URL, location: str) -> httpx.URL:
    try:
        return url.join(location)
    except httpx.InvalidURL as error:
        raise misconfigured(f"The target redirects to an invalid URL: {error}.") from None


def get_origin(url: httpx.URL) -> tuple[str, str, int]:
    """Return scheme, host and port, with the default port filled in."""
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


def parse_url(text: str) -> httpx.URL:
    """Parse a target's URL. Raises EndpointError(misconfigured) with the reason."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise misconfigured(f"The URL is not valid: {error}.") from None
    if url.scheme not in ("http", "https"):
        raise misconfigured("The URL must start with http:// or https://.")
    if not url.host:
        raise misconfigured("The URL names no host.")
    if url.port is not None and not 1 <= url.port <= 65535:
        raise misconfigured("The port of the URL must lie in 1 to 65535.")
    if url.userinfo:
        raise misconfigured("The URL must hold no user name or password; use the secret.")
    return url.copy_with(fragment=None)


_NUMBER_PATTERN = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header, a number or an HTTP date; None without one.

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
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None

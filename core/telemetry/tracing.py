"""Traces by OpenTelemetry, from the request for a page to model calls and stored results.

Calls of our model server carry the trace in their headers, so that the server adds its own spans.

Without tracing, the overhead is one comparison; `requirements-tracing.txt` lists the libraries.
Spans name routes and targets, never people or texts.
"""

import contextvars
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

P = ParamSpec("P")
T = TypeVar("T")
_provider: "TracerProvider | None" = None


def start_tracing(service: str = "dynabench-web") -> "TracerProvider":
    """Send this process's spans as configured by the OTEL_… variables; return the provider.

    Call it after forks: it starts a thread, which would not survive one.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    global _provider
    os.environ.setdefault("OTEL_SERVICE_NAME", service)
    _provider = TracerProvider()
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return _provider


@contextmanager
def trace_service(service: str) -> Iterator[None]:
    """Send this process's spans within the context, and flush them at its end."""
    provider = start_tracing(service)
    try:
        yield
    finally:
        # Spans wait for the next batch, which a process that ends does not send.
        provider.shutdown()


@contextmanager
def open_span(name: str, **attributes: str | int) -> Iterator[Any]:
    """Open a span for a step within the context; yield the span, or None without tracing."""
    if _provider is None:
        yield None
        return
    tracer = _provider.get_tracer("dynabench")
    with tracer.start_as_current_span(name, attributes=attributes) as span:
        yield span


def build_trace_headers() -> list[tuple[bytes, bytes]]:
    """Return the headers with which our model server joins this trace; empty without tracing."""
    if _provider is None:
        return []
    from opentelemetry.propagate import inject

    headers: dict[str, str] = {}
    inject(headers)
    return [(name.encode(), value.encode()) for name, value in headers.items()]


@contextmanager
def trace_answer(name: str, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[Any]:
    """Open a span in the trace named by a request's headers; yield it, or None without tracing."""
    if _provider is None:
        yield None
        return
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind

    carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    tracer = _provider.get_tracer("dynabench")
    caller_context = extract(carrier)
    with tracer.start_as_current_span(name, context=caller_context, kind=SpanKind.SERVER) as span:
        yield span


def submit_work(
    executor: Executor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> tuple[Future[T], contextvars.Context]:
    """Run `work` in a thread with the caller's context, so that logs and traces name its request.

    Returns the future, and the context in which its callbacks can run.
    """
    # A thread of the pool begins without the request and the span of its caller.
    context = contextvars.copy_context()
    return executor.submit(lambda: context.run(work, *args, **kwargs)), context

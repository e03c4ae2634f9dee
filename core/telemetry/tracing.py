"""Traces by OpenTelemetry, from a page over the calls of models to what is stored.

Our model server adds what it did: calls of it carry the trace in their headers.

Off, they cost a comparison; `requirements-tracing.txt` has the libraries. Spans name routes and
targets, never people or texts.
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
    """Send this process's spans as the variables OTEL_… say. Call it after forks.

    It starts a thread, which would not survive a fork.
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
def traced(service: str) -> Iterator[None]:
    """Send this process's spans within the context, and flush them at its end."""
    provider = start_tracing(service)
    try:
        yield
    finally:
        # Spans wait for the next batch, which a process that ends does not send.
        provider.shutdown()


@contextmanager
def span(name: str, **attributes: str | int) -> Iterator[Any]:
    """Trace a step; yield OpenTelemetry's span, or None without tracing."""
    if _provider is None:
        yield None
        return
    tracer = _provider.get_tracer("dynabench")
    with tracer.start_as_current_span(name, attributes=attributes) as current:
        yield current


def carried() -> list[tuple[bytes, bytes]]:
    """Return the headers by which our model server joins this trace.

    Empty without tracing.
    """
    if _provider is None:
        return []
    from opentelemetry.propagate import inject

    headers: dict[str, str] = {}
    inject(headers)
    return [(name.encode(), value.encode()) for name, value in headers.items()]


@contextmanager
def answering(name: str, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[Any]:
    """Trace a request as part of the trace in its headers; yield as `span` does."""
    if _provider is None:
        yield None
        return
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind

    carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    tracer = _provider.get_tracer("dynabench")
    caller = extract(carrier)
    with tracer.start_as_current_span(name, context=caller, kind=SpanKind.SERVER) as current:
        yield current


def submit(
    threads: Executor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> tuple[Future[T], contextvars.Context]:
    """Run `work` in a thread with the caller's context: the same request in logs, the same trace.

    Returns the future, and the context in which its callbacks can run.
    """
    # A thread of the pool begins without the request and the span of its caller.
    context = contextvars.copy_context()
    return threads.submit(lambda: context.run(work, *args, **kwargs)), context

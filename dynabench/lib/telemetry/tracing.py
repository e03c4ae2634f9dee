"""Traces by OpenTelemetry, from a page over the calls of models to what is stored.

Off, they cost a comparison; `requirements-tracing.txt` has the libraries. Spans name routes and
targets, never people or texts.
"""

import contextvars
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

P = ParamSpec("P")
T = TypeVar("T")
_provider: "TracerProvider | None" = None


def start_tracing() -> "TracerProvider":
    """Send this process's spans as the variables OTEL_… say. It starts a thread: after forks."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    global _provider
    os.environ.setdefault("OTEL_SERVICE_NAME", "dynabench-web")
    _provider = TracerProvider()
    _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return _provider


@contextmanager
def span(name: str, **attributes: str | int) -> Iterator[Any]:
    """A step of a trace; yields OpenTelemetry's span, or None where nothing is traced."""
    if _provider is None:
        yield None
        return
    tracer = _provider.get_tracer("dynabench")
    with tracer.start_as_current_span(name, attributes=attributes) as current:
        yield current


def submit(
    threads: Executor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> tuple[Future[T], contextvars.Context]:
    """Have a thread work for what goes on here: the same request in its logs, the same trace.

    Returns with the future the context, in which callbacks of the future can run.
    """
    context = contextvars.copy_context()
    return threads.submit(lambda: context.run(work, *args, **kwargs)), context

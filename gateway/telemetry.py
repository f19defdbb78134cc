"""OpenTelemetry spans: turn, recall, model step, tool, review. Without its packages (requirements/otel.txt) they do
nothing. Attributes are names of runs, models and tools, and counts; they contain no text of people, and no error
messages, which may quote it.

A span is current only within a coroutine, since an async generator may be closed in another context than the one in
which it began. The generators of a turn pass their span as an argument instead."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Self

from gateway.requests import trace_context

try:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    _tracer: Any = None
else:
    _tracer = trace.get_tracer("daybook")
    _propagator = TraceContextTextMapPropagator()

Attributes = Mapping[str, str | int | float | bool]


class Span:
    """A running span, or a no-op. As a context manager it ends with the block."""

    def __init__(self, inner: Any = None) -> None:
        self._inner = inner

    def note(self, attributes: Attributes) -> None:
        if self._inner is not None:
            self._inner.set_attributes(attributes)

    def end(self, error: BaseException | None = None) -> None:
        """End the span. Of an error only its code or class name is recorded."""
        if self._inner is None:
            return
        if error is not None:
            self._inner.set_attribute("error.type", getattr(error, "code", "") or type(error).__name__)
            self._inner.set_status(trace.StatusCode.ERROR)
        self._inner.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.end(error if isinstance(error, Exception) else None)  # cancellation is not an error

    def current(self) -> AbstractContextManager[Any]:
        """Make spans that begin within the block its children."""
        if self._inner is None:
            return nullcontext()
        return trace.use_span(self._inner, record_exception=False, set_status_on_exception=False)

    def headers(self) -> dict[str, str]:
        """Return the trace headers for a request to a server: this span's, or else the client's own."""
        found: dict[str, str] = {}
        if self._inner is not None:
            _propagator.inject(found, trace.set_span_in_context(self._inner))
        return found or dict(trace_context.get())


NOTHING = Span()


def _is_on() -> bool:
    """Return True if OpenTelemetry is configured in this process; without a provider, spans would go nowhere."""
    if _tracer is not None and isinstance(_tracer, trace.ProxyTracer):
        return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    return _tracer is not None


def begin(name: str, attributes: Attributes, *, parent: Span = NOTHING) -> Span:
    """Begin a span below its parent: the given one, or the current one, or the client's."""
    if not _is_on():
        return NOTHING
    context = None
    if parent._inner is not None:
        context = trace.set_span_in_context(parent._inner)
    elif not trace.get_current_span().get_span_context().is_valid:
        context = _propagator.extract(trace_context.get())
    return Span(_tracer.start_span(name, context=context, attributes=dict(attributes), record_exception=False))


@contextmanager
def span(name: str, attributes: Attributes, *, parent: Span = NOTHING) -> Iterator[Span]:
    """Begin a span that is current within the block. For functions and coroutines, not for generators."""
    with begin(name, attributes, parent=parent) as begun, begun.current():
        yield begun

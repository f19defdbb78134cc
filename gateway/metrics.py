"""Prometheus metrics of a web process: turns and their duration, model tokens, open websockets, and the counters of the
memories app. gateway.turns.engine and gateway.consumers report to it; config.metrics serves the metrics and adds
figures from the database. No label contains an owner, a session or any text."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from gateway import upstream
from gateway.models import Run
from gateway.upstream.attempts import ResilientModel, outcomes
from memories.counters import recall_lanes, scan_blocks
from memories.providers import failures
from memories.recall.snapshot import snapshots

_TURN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_FIRST_TOKEN_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

disable_created_metrics()  # type: ignore[no-untyped-call]  # avoids a second series per counter
registry = CollectorRegistry()
ProcessCollector(registry=registry)
GCCollector(registry=registry)

_turns = Counter("daybook_turns", "Turns that ended, by state.", ["state"], registry=registry)
_turn_seconds = Histogram(
    "daybook_turn_seconds", "From an open run to its end.", ["state"], buckets=_TURN_SECONDS, registry=registry
)
_first_token_seconds = Histogram(
    "daybook_first_token_seconds",
    "From an open run to the first text of a streamed answer.",
    buckets=_FIRST_TOKEN_SECONDS,
    registry=registry,
)
_model_tokens = Counter(
    "daybook_model_tokens", "Tokens of turns, as the upstream counts them, by kind.", ["kind"], registry=registry
)
open_websockets = Gauge("daybook_open_websockets", "Notification websockets of this process.", registry=registry)

for _state in (Run.State.COMPLETED, Run.State.FAILED, Run.State.STOPPED, Run.State.AWAITING_CLIENT_TOOLS):
    _turns.labels(_state.value)  # exports 0 instead of omitting the series
_PROMPT, _COMPLETION = _model_tokens.labels("prompt"), _model_tokens.labels("completion")


class TurnClock:
    """Measures one turn, from the moment its run is open. `usage` is the usage so far of a resumed run."""

    def __init__(self, usage: Mapping[str, int]) -> None:
        self._started = time.perf_counter()
        self._used_before = dict(usage)
        self._has_text = False

    def text_arrived(self) -> None:
        """Record the time to the first text of a streamed answer."""
        if not self._has_text:
            self._has_text = True
            _first_token_seconds.observe(time.perf_counter() - self._started)

    def run_closed(self, state: Run.State, usage: Mapping[str, int]) -> None:
        """Record a turn that has ended or now waits for the client's tools."""
        _turns.labels(state.value).inc()
        _turn_seconds.labels(state.value).observe(time.perf_counter() - self._started)
        for counter, name in ((_PROMPT, "prompt_tokens"), (_COMPLETION, "completion_tokens")):
            counter.inc(max(0, usage.get(name, 0) - self._used_before.get(name, 0)))


def _counted(name: str, help: str, labels: list[str], counts: Mapping[Any, float]) -> Metric:
    """Return a metric with the values of a plain counter. Its keys are labels, or tuples of labels."""
    family = CounterMetricFamily(name, help, labels=labels)
    for key, count in list(counts.items()):
        family.add_metric([key] if isinstance(key, str) else key, count)
    return family


class _MemoryCounters(Collector):
    """Collects the counters of the memories app, which does not know Prometheus."""

    def collect(self) -> Iterator[Metric]:
        lanes = "Lanes of recall that ran, by lane and outcome."
        yield _counted("daybook_recall_lanes", lanes, ["lane", "state"], recall_lanes)
        yield _counted("daybook_scan_blocks", "Blocked writes in this process, by rule.", ["rule"], scan_blocks)
        failed = "Runs that another memory provider did not record."
        yield _counted("daybook_provider_failures", failed, ["provider"], failures)
        sessions, views, nbytes = snapshots.sizes()
        yield GaugeMetricFamily("daybook_snapshot_sessions", "Session snapshots in memory.", value=sessions)
        yield GaugeMetricFamily("daybook_snapshot_books", "Book views in memory.", value=views)
        yield GaugeMetricFamily("daybook_snapshot_bytes", "Bytes of the book views.", value=nbytes)


class _Upstreams(Collector):
    """Collects attempts, open circuit breakers and queued requests by upstream."""

    def collect(self) -> Iterator[Metric]:
        attempts = "Requests to models, by upstream, model and outcome: ok, or the kind of fault."
        yield _counted("daybook_upstream_attempts", attempts, ["upstream", "model", "outcome"], outcomes)
        model = upstream.model()
        resting = GaugeMetricFamily(
            "daybook_upstream_open", "Models that are not asked after faults.", labels=["upstream", "model"]
        )
        waiting = GaugeMetricFamily(
            "daybook_upstream_requests", "Requests where an upstream has a limit.", labels=["upstream", "state"]
        )
        if isinstance(model, ResilientModel):
            for target, circuit in list(model.circuits.items()):
                resting.add_metric(target, float(circuit.any_fault.is_open))
            for name, limit in list(model.limits.items()):
                waiting.add_metric((name, "running"), limit.running)
                waiting.add_metric((name, "waiting"), limit.waiting)
        yield resting
        yield waiting


registry.register(_MemoryCounters())
registry.register(_Upstreams())

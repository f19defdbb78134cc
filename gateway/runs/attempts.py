"""The trace entries of a run about model servers: which models were asked, what failed, which one answered, and which
one did not accept our tools. They contain no addresses and no text of the conversation."""

from collections.abc import Mapping
from typing import Any

from gateway.upstream.request import ModelTarget, RequestLog

MAX_ATTEMPTS = 100


class RunAttempts:
    """The attempts of all steps of a run. `earlier` is the trace from before the run waited for its client's tools."""

    def __init__(self, earlier: Mapping[str, Any]) -> None:
        self._earlier: list[dict[str, Any]] = list(earlier.get("attempts", ()))
        self._logs: list[RequestLog] = []

    def next_log(self) -> RequestLog:
        """Return a new RequestLog, which the request of the next step fills."""
        self._logs.append(RequestLog())
        return self._logs[-1]

    def prefer(self, target: ModelTarget) -> ModelTarget:
        """Return an agent's models, first the one that answered before: the conversation contains its reasoning."""
        before = [ModelTarget(entry["upstream"], entry["model"]) for entry in self._earlier if not entry["fault"]]
        answered = [*before, *(log.answered_by for log in self._logs)]
        last = next(filter(None, reversed(answered)), None)
        return target.preferring(last) if last in target.all else target

    def with_attempts(self, trace: dict[str, Any]) -> dict[str, Any]:
        """Return a run's trace with the attempts, if any failed, and the model that accepted no tools, if any."""
        toolless = next((log.toolless for log in reversed(self._logs) if log.toolless), None)
        if toolless is not None:
            trace = {**trace, "toolless": {"upstream": toolless.upstream, "model": toolless.model}}
        attempts = [*self._earlier, *(entry for log in self._logs for entry in log.attempts)]
        return {**trace, "attempts": attempts[:MAX_ATTEMPTS]} if attempts else trace

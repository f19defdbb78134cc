"""The entries about model servers in a run's trace: which models were asked, what was wrong, and which one answered;
and which one took none of our tools. Without addresses and without text of the conversation."""

from collections.abc import Mapping
from typing import Any

from gateway.upstream.request import ModelTarget, RequestLog

MOST_NOTED = 100


class RunAttempts:
    """The attempts of all steps of a run. `earlier` is the trace of the part before the run waited for its client."""

    def __init__(self, earlier: Mapping[str, Any]) -> None:
        self._earlier: list[dict[str, Any]] = list(earlier.get("attempts", ()))
        self._logs: list[RequestLog] = []

    def next_log(self) -> RequestLog:
        """Return the log that the next step's request fills."""
        self._logs.append(RequestLog())
        return self._logs[-1]

    def prefer(self, target: ModelTarget) -> ModelTarget:
        """Return an agent's models, beginning with the one that answered before, since the conversation has its
        reasoning."""
        before = [ModelTarget(one["upstream"], one["model"]) for one in self._earlier if not one["fault"]]
        answered = [*before, *(log.answered_by for log in self._logs)]
        last = next((target for target in reversed(answered) if target), None)
        return target.preferring(last) if last in target.all else target

    def noted(self, trace: dict[str, Any]) -> dict[str, Any]:
        """Return a run's trace with the attempts, if any failed, and the model that took no tools, if one did."""
        toolless = next((log.toolless for log in reversed(self._logs) if log.toolless), None)
        if toolless is not None:
            trace = {**trace, "toolless": {"upstream": toolless.upstream, "model": toolless.model}}
        attempts = [*self._earlier, *(entry for log in self._logs for entry in log.attempts)]
        return {**trace, "attempts": attempts[:MOST_NOTED]} if attempts else trace

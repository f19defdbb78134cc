"""Model, tokens, cost and duration of a turn, for the chat page and the admin."""

from collections.abc import Mapping, Sequence

from gateway.agents.settings import Price
from gateway.limits.money import Money, dollars, usage_words
from gateway.models import Run


def run_figures(run: Run, prices: Mapping[str, Price]) -> Sequence[tuple[str, str]]:
    """Return (label, value) pairs for a finished run; unknown values are left out."""
    if run.finished_at is None:
        return ()
    figures = (
        ("Model", run.model),
        ("Tokens", usage_words(run.usage) if run.usage.get("total_tokens") else ""),
        ("Cost", cost_words(run, prices)),
        ("Time", f"{(run.finished_at - run.started_at).total_seconds():.1f} s"),
    )
    return [(word, value) for word, value in figures if value]


def cost_words(run: Run, prices: Mapping[str, Price]) -> str:
    """Return the cost of a run's tokens, or "" if its model has no price or reported no tokens."""
    total, written = run.usage.get("total_tokens"), run.usage.get("completion_tokens")
    return dollars(Money(prices).cost(run.model, total, written)) if run.model in prices and total else ""

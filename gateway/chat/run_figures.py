"""What a turn took, for its details on the chat page."""

from collections.abc import Mapping, Sequence

from gateway.agents.settings import Price
from gateway.limits.money import Money, Tokens, dollars, usage_words
from gateway.models import Run


def run_figures(run: Run, prices: Mapping[str, Price]) -> Sequence[tuple[str, str]]:
    """Return model, tokens, cost and time of a run that is over, each with its word; without what is not known."""
    if run.finished_at is None:
        return ()
    usage = run.usage if isinstance(run.usage, Mapping) else {}
    figures = [("Model", run.model), ("Tokens", usage_words(usage) if usage.get("total_tokens") else "")]
    if run.model in prices and usage.get("total_tokens"):
        tokens = Tokens.of(usage.get("total_tokens"), usage.get("completion_tokens"))
        figures.append(("Cost", dollars(Money(prices).cost(run.model, tokens))))
    figures.append(("Time", f"{(run.finished_at - run.started_at).total_seconds():.1f} s"))
    return [(word, value) for word, value in figures if value]

"""The table of clients in docs/clients.md: which is tried, in which version, and what it is seen to do."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.clients.programs import CLIENTS, COLUMNS, Client

_SEEN = {"passed": "yes", "failed": "**no**", "skipped": "not tried"}


def matrix(stats: Mapping[str, Sequence[Any]]) -> str:
    """Return the table, in Markdown. `stats`: reports of tests by outcome, as pytest's terminal reporter has them."""
    seen = {_case(report.nodeid): _SEEN[state] for state in _SEEN for report in stats.get(state, ())}
    return _table(lambda client, column: seen.get(f"{client.name}: {column}", "not tried"))


def documented() -> str:
    """Return the table as it is when all tests pass."""
    return _table(lambda client, column: "yes")


def _table(cell: Any) -> str:
    lines = [("client", "version", "API", *COLUMNS), ("---",) * (len(COLUMNS) + 3)]
    for client in CLIENTS:
        cells = (cell(client, column) if column in client.columns else "" for column in COLUMNS)
        lines.append((client.name, _version(client), client.api, *cells))
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |").replace("|  |", "| |") for line in lines)


def _version(client: Client) -> str:
    return client.version or "as locked"


def _case(nodeid: str) -> str:
    return nodeid.partition("[")[2].removesuffix("]")

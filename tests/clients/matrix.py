"""The table of clients in docs/clients.md: which clients are tested, in which version, and what they do."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.clients.programs import CLIENTS, COLUMNS, Client

_CELLS = {"passed": "yes", "failed": "**no**", "skipped": "not tried"}


def matrix(stats: Mapping[str, Sequence[Any]]) -> str:
    """Return the table in Markdown. `stats` holds the test reports by outcome, as in pytest's terminal reporter."""
    cells = {_case(report.nodeid): _CELLS[state] for state in _CELLS for report in stats.get(state, ())}
    return _table(lambda client, column: cells.get(f"{client.name}: {column}", "not tried"))


def documented() -> str:
    """Return the table if all tests pass."""
    return _table(lambda client, column: "yes")


def _table(cell: Any) -> str:
    lines = [("client", "version", "API", *COLUMNS), ("---",) * (len(COLUMNS) + 3)]
    for client in CLIENTS:
        columns = (cell(client, column) if column in client.columns else "" for column in COLUMNS)
        lines.append((client.name, _version(client), client.api, *columns))
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |").replace("|  |", "| |") for line in lines)


def _version(client: Client) -> str:
    return client.version or "as locked"


def _case(nodeid: str) -> str:
    return nodeid.partition("[")[2].removesuffix("]")

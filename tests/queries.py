"""Record the statements that a request sends to the database."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any
from unittest.mock import patch

from django.db import connections

from memories.database.access import in_thread

_TRANSACTION_CONTROL = ("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT")
_MODULES_WRITING_LATER = ("gateway.limits.key_uses", "gateway.mcp.resources", "memories.tools.documents")


@asynccontextmanager
async def statements() -> AsyncIterator[list[str]]:
    """Collect the statements of a block, without those that only begin or end transactions.

    `write_later` is disabled, since on a slow machine its writes, some seconds later, would be counted in another
    block."""
    found: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        if not sql.startswith(_TRANSACTION_CONTROL):
            found.append(sql)
        return execute(sql, *rest)

    with ExitStack() as patched:
        for module in _MODULES_WRITING_LATER:
            patched.enter_context(patch(f"{module}.write_later", lambda function: None))
        # In a coroutine, `connection` would be a different connection.
        patched.enter_context((await in_thread(connections.__getitem__, "default")).execute_wrapper(note))
        yield found

"""The statements that a request sends to the database."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any
from unittest.mock import patch

from django.db import connections

from memories.database.access import in_thread

_FRAME = ("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT")
_STORED_LATER = ("gateway.limits.key_uses", "gateway.mcp.resources", "memories.tools.documents")


@asynccontextmanager
async def statements() -> AsyncIterator[list[str]]:
    """The statements of a block, without those that only begin and end transactions, and without what is stored some
    seconds later between the writes of others: on a slow machine it would fall into the block of a later request."""
    found: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        if not sql.startswith(_FRAME):
            found.append(sql)
        return execute(sql, *rest)

    with ExitStack() as patched:
        for module in _STORED_LATER:
            patched.enter_context(patch(f"{module}.write_later", lambda function: None))
        # In a coroutine `connection` would be another one.
        patched.enter_context((await in_thread(connections.__getitem__, "default")).execute_wrapper(note))
        yield found

"""Rows of memories, their revisions and their books are written in memories/services/ only, whatever a test does."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = f"{Path(__file__).resolve().parent.parent}/"
_WRITES = re.compile(r'^(?:INSERT INTO|UPDATE|DELETE FROM) "memories_(?:memory|revision|changeset|book)"')
_MAY = re.compile(r"memories/services/|tests/|bench/|\.venv/|[a-z]+/migrations/")
_FOR_OTHERS = ("/memories/database/compiled.py", "/memories/database/statements.py")  # they execute what others write


class Watch:
    """A wrapper of a connection's statements that notes who else writes."""

    def __init__(self) -> None:
        self.others: list[str] = []

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if _WRITES.match(sql):
            writer = _nearest_of_ours()
            if not _MAY.match(writer):
                self.others.append(f"{writer}: {sql[:60]}")
        return execute(sql, params, many, context)


def _nearest_of_ours() -> str:
    frame = sys._getframe(2)
    while frame is not None and (
        not frame.f_code.co_filename.startswith(_ROOT)
        or "/site-packages/" in frame.f_code.co_filename
        or frame.f_code.co_filename.endswith(_FOR_OTHERS)
    ):
        frame = frame.f_back  # type: ignore[assignment]
    return f"{frame.f_code.co_filename.removeprefix(_ROOT)}:{frame.f_lineno}" if frame else "tests/"

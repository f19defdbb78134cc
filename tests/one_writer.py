"""Check in every test that only memories/services/ writes memories, their revisions and their books."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = f"{Path(__file__).resolve().parent.parent}/"
_WRITES = re.compile(r'^(?:INSERT INTO|UPDATE|DELETE FROM) "memories_(?:memory|revision|changeset|book)"')
_ALLOWED = re.compile(r"memories/services/|tests/|bench/|\.venv/|[a-z]+/migrations/")
_EXECUTORS = ("/memories/database/compiled.py", "/memories/database/statements.py")  # they execute others' statements


class WriteWatch:
    """An `execute_wrapper` that records writes from anywhere else."""

    def __init__(self) -> None:
        self.violations: list[str] = []

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if _WRITES.match(sql):
            writer = _calling_line()
            if not _ALLOWED.match(writer):
                self.violations.append(f"{writer}: {sql[:60]}")
        return execute(sql, params, many, context)


def _calling_line() -> str:
    frame = sys._getframe(2)
    while frame is not None and (
        not frame.f_code.co_filename.startswith(_ROOT)
        or "/site-packages/" in frame.f_code.co_filename
        or frame.f_code.co_filename.endswith(_EXECUTORS)
    ):
        frame = frame.f_back  # type: ignore[assignment]
    return f"{frame.f_code.co_filename.removeprefix(_ROOT)}:{frame.f_lineno}" if frame else "tests/"

"""bench/fairness.py measures every operation, page and tool: a new one needs a row there."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from gateway.mcp import tools

_FILE = Path(__file__).resolve().parents[2] / "bench" / "fairness_rows.py"
_NOT_MEASURED = {"openapi-json", "openapi-view", "api-root", "^admin/r/"}


@pytest.fixture(scope="module")
def fairness() -> Iterator[ModuleType]:
    """The benchmark's module, which is a script outside the product's packages."""
    spec = importlib.util.spec_from_file_location("fairness_rows", _FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def _routes(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield `(path, name)` of every route except the admin's."""
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if pattern.app_name != "admin":
                yield from _routes(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern):
            yield path, pattern.name or ""


def _names(rows: dict[str, Any]) -> set[str]:
    return {name.partition(":")[0] if ": " in name else name for name in rows}


def test_every_operation_page_and_tool_has_a_row(fairness: ModuleType) -> None:
    known = _names(fairness.OPERATIONS) | _names(fairness.PAGES) | _names(fairness.OTHER_PATHS)
    missing = {
        path for path, name in _routes(get_resolver().url_patterns) if not {path, name} & (known | _NOT_MEASURED)
    }
    assert missing == set()
    assert set(tools.NAMES) - _names(fairness.TOOLS) == set()


def test_every_row_makes_a_request(fairness: ModuleType) -> None:
    world = fairness.World("dbk_key", "session", "turn", "1", "review", "change")
    for name, row in fairness.rows().items():
        call = row(world, 1)
        assert call.path.startswith("/"), name
        assert call.method in {"GET", "POST", "PUT", "PATCH", "DELETE"}, name

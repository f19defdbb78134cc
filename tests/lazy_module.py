"""Import packages that take long to import and that few tests use only when a test first uses them.

Every test process collects every file, so what a file imports is imported once per process."""

from typing import Any

import pytest


class LazyModule:
    """A module that is imported on first use. If it is missing, the test that uses it is skipped."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest inspects every name in a file
            raise AttributeError(attribute)
        return getattr(pytest.importorskip(self._name), attribute)

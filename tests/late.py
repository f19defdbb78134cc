"""Packages that take long to import and that few tests use. Every test process collects every file, so what files
import is imported as often as there are processes; these are imported where a test uses them first."""

from typing import Any

import pytest


class Late:
    """A module that is imported when something of it is asked for; a test that asks is skipped if it is missing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks at whatever stands in a file
            raise AttributeError(attribute)
        return getattr(pytest.importorskip(self._name), attribute)

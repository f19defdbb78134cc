"""How much work a function does: the calls that Python makes, which do not depend on how busy the machine is."""

import sys
from collections.abc import Callable
from typing import Any


def steps(function: Callable[..., Any], *args: Any) -> int:
    """The number of calls, of Python and of C functions, that `function(*args)` makes."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return count

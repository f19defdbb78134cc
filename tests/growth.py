"""Measure how a function's cost grows with its input, for work inside regular expressions that makes no calls."""

import time
from collections.abc import Callable

_FLOOR = 0.002  # seconds; below it, the clock and the caches decide


def cost_ratio(function: Callable[[int], object], size: int, factor: int = 8) -> float:
    """Return how many times as much processor time `function(factor * size)` takes as `function(size)`. Linear work
    gives about `factor`, quadratic work its square."""
    small, large = (min(_seconds(function, count) for _ in range(3)) for count in (size, factor * size))
    return large / max(small, _FLOOR)


def _seconds(function: Callable[[int], object], size: int) -> float:
    began = time.process_time()
    function(size)
    return time.process_time() - began

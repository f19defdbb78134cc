"""Tuning of the garbage collector. Objects created by imports live forever, so collection pauses while a process loads
and ignores them later: a full collection of 200,000 objects stops all threads for a fifth of a second."""

import gc

_FULL_AFTER = 100


def pause() -> None:
    """Stop collecting while a process loads."""
    gc.disable()


def resume(*, collect: bool = False) -> None:
    """Resume collection, excluding the objects that exist now, so that forks share their memory. `collect` frees unused
    ones first."""
    if collect:
        gc.collect()
    gc.freeze()
    gc.enable()


def seldom() -> None:
    """Run a full collection after a hundred of the middle generation instead of ten. With full caches it stops all
    threads for 0.1 s, and requests leave little garbage that only it finds."""
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _FULL_AFTER)

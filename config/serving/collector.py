"""The garbage collector. Objects that are created by imports stay for ever, so collection pauses while a process loads,
and later ignores them: a full collection of 200,000 objects stops every thread for a fifth of a second."""

import gc

_FULL_AFTER = 100


def pause() -> None:
    """Stop collecting while a process loads."""
    gc.disable()


def resume(*, collect: bool = False) -> None:
    """Collect again, without the objects that exist now; forks can share those. `collect` frees unused ones first."""
    if collect:
        gc.collect()
    gc.freeze()
    gc.enable()


def seldom() -> None:
    """Let a full collection come after a hundred of the middle generation instead of ten. It stops every thread for as
    long as the caches are large (0.1 s), and requests leave little that only it finds."""
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _FULL_AFTER)

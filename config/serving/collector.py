"""The garbage collector. Objects that are created by imports stay for ever, so collection pauses while a process loads,
and later ignores them: a full collection of 200,000 objects stops every thread for a fifth of a second."""

import gc


def pause() -> None:
    """Stop collecting while a process loads."""
    gc.disable()


def resume(*, collect: bool = False) -> None:
    """Collect again, without the objects that exist now; forks can share those. `collect` frees unused ones first."""
    if collect:
        gc.collect()
    gc.freeze()
    gc.enable()

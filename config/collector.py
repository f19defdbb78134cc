"""The garbage collector. Importing makes only objects that stay, so it rests meanwhile and never looks at them again: a
full pass over 200,000 objects holds up every thread for a fifth of a second, in the middle of somebody's request."""

import gc


def pause() -> None:
    """Do without it while a process loads."""
    gc.disable()


def resume(*, collect: bool = False) -> None:
    """Go on, without what is loaded by now; forks can share that. `collect` frees before what is not used."""
    if collect:
        gc.collect()
    gc.freeze()
    gc.enable()

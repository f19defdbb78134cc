"""What the worker does every few seconds, in this order: plain functions, idempotent, safe in several workers
at once. Each ends what was left behind (lost jobs, expired leases, old rows); config.worker calls them."""

from collections.abc import Callable

Sweep = Callable[[], None]

SWEEPS: tuple[Sweep, ...] = ()

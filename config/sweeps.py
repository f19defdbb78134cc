"""What the worker does every few seconds, in this order: plain functions, idempotent, safe in several workers
at once. Each ends what was left behind (lost jobs, expired leases, old rows); config.worker calls them."""

from collections.abc import Callable

from gateway.sweep import accounts_sweep, runs_sweep, sessions_sweep
from gateway.webhooks.delivery import webhooks_sweep
from memories.forgetting import forgetting_sweep
from memories.sweep import memories_sweep
from reviews.alerts import alerts_sweep
from reviews.consolidation.triggers import consolidation_sweep
from reviews.sweep import reviews_sweep

Sweep = Callable[[], None]

SWEEPS: tuple[Sweep, ...] = (
    runs_sweep,
    webhooks_sweep,
    reviews_sweep,
    consolidation_sweep,
    memories_sweep,
    forgetting_sweep,
    sessions_sweep,
    accounts_sweep,
    alerts_sweep,
)

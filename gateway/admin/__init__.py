"""The admin's pages of the gateway: sessions and runs to look at, agents, keys and connected apps to look after."""

from gateway.admin import (
    agents,
    connected_apps,
    invitations,
    keys,
    learned,
    memory_uses,
    operations,
    runs,
    sessions,
    usage,
    users,
    webhooks,
)

__all__ = [
    "agents", "connected_apps", "invitations", "keys", "learned", "memory_uses", "operations", "runs", "sessions",
    "usage", "users", "webhooks",
]  # fmt: skip

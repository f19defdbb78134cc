"""The gateway's admin pages."""

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

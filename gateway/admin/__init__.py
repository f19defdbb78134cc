"""The gateway's admin pages."""

from gateway.admin import (
    agents,
    configuration,
    invitations,
    keys,
    memory_uses,
    operations,
    runs,
    sessions,
    usage,
    users,
    webhooks,
)

"""The admin's pages of the gateway: sessions and runs to look at, agents and keys to look after."""

from gateway.admin import agents, keys, learned, operations, sessions

__all__ = ["agents", "keys", "learned", "operations", "sessions"]

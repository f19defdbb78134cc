"""Settings of the queue and of the hints between processes: on Redis, or else in the database and by datagrams."""

from pathlib import Path
from typing import Any

from config.environment import Environment


def queue(env: Environment) -> dict[str, Any]:
    """Return django-q2's settings."""
    broker = {"broker_class": "memories.messaging.redis_clients.QueueBroker"} if env.redis_url else {"orm": "default"}
    return broker | {
        "name": "daybook",
        "workers": env.workers,
        "queue_limit": env.workers,
        # Backstops only: a review has its own deadline, and attempts are counted in its claim.
        "timeout": 3600,
        "retry": 7200,
        "max_attempts": 1,
        "ack_failures": True,
        "catch_up": False,
        "save_limit": 250,
        "poll": 0.1,
        "label": "Queue",
    }


def channel_layer(env: Environment, home: Path) -> dict[str, Any]:
    """Return the settings of the channel layer."""
    if not env.redis_url:
        backend = "memories.messaging.datagrams.DatagramChannelLayer"
        return {"BACKEND": backend, "CONFIG": {"folder": home / "sockets"}}
    # The layer waits 5 s for a message, so a shorter read timeout would break idle sockets.
    host = {"address": env.redis_url.get_secret_value(), "socket_timeout": 8, "socket_connect_timeout": 1}
    return {"BACKEND": "memories.messaging.redis_clients.HintLayer", "CONFIG": {"hosts": [host]}}

"""Sets the isolation level of connections, and replaces those that PostgreSQL has ended (an idle timeout, a restart, a
failover) before they are used.

All connections come through here: those of a pool when it hands them out, and kept ones at the beginning of a job, a
sweep or a poll, when `close_if_unusable_or_obsolete` is called. Nothing is sent to connections that are alive. Django's
health check would send a query every time; in a pool, it pauses for seconds between connections that have ended."""

import select
from typing import Any

import psycopg
from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection wrapper, with an isolation level and a look at the socket before a connection is used."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a new connection, or one of the pool that has not ended."""
        connection = super().get_new_connection(conn_params)
        while self.pool and _has_ended(connection):
            connection.close()
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection

    def close_if_unusable_or_obsolete(self) -> None:
        """Close a kept connection that has ended, or that Django would close."""
        if self.connection is not None and _has_ended(self.connection):
            self.close()
        super().close_if_unusable_or_obsolete()

    def _configure_connection(self, connection: Any) -> bool:
        """Configure a new connection. Row locks and compare-and-set need READ COMMITTED, as a statement must see what
        the one that it waited for has changed; the default of the database or role may be another level."""
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_isolation = 'read committed'")
        super()._configure_connection(connection)  # type: ignore[misc]  # Django's own
        return True  # to be committed


def _has_ended(connection: Any) -> bool:
    """Return True if the server has closed a connection, or the kernel's keepalives found that the server is gone. Its
    socket is readable then; since it is also readable after a notice of the server, a query is sent to make sure."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return False
    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        return True
    return False

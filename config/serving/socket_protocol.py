"""How much the client of a websocket may send, for both servers, and uvicorn's websocket protocol with that limit.
Clients of our sockets only listen: what they send is answers to pings and the end. Without a limit many small frames
hold up everybody, since a read is handled in one go."""

import time
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode

CLIENT_BYTES = 16_000
CLIENT_SECONDS = 20.0


class ClientBytes:
    """Counts what the client of one websocket sends."""

    def __init__(self) -> None:
        self._count = 0
        self._since = 0.0

    def too_much(self, count: int) -> bool:
        """Count bytes. Return True if there are more than CLIENT_BYTES in CLIENT_SECONDS."""
        now = time.monotonic()
        if now - self._since > CLIENT_SECONDS:
            self._since, self._count = now, 0
        self._count += count
        return self._count > CLIENT_BYTES


class ListenerProtocol(WebSocketsSansIOProtocol):
    """One websocket. It is closed if its client sends more than CLIENT_BYTES in CLIENT_SECONDS, or a head that cannot
    be read."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._sent = ClientBytes()

    def data_received(self, data: bytes) -> None:
        if self.handshake_initiated and self._sent.too_much(len(data)):
            self._refuse()
            return
        super().data_received(data)
        if not self.handshake_initiated:
            self._answer_unreadable_head()

    def _refuse(self) -> None:
        """Say why, and close without waiting for the other side."""
        if self.transport.is_closing():
            return
        if self.handshake_complete and not self.close_sent:
            self.conn.fail(CloseCode.POLICY_VIOLATION, "this socket only sends")
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
        self.transport.close()

    def _answer_unreadable_head(self) -> None:
        """Send the refusal that websockets prepared. Uvicorn starts no task for such a head, so nothing else would."""
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.close()

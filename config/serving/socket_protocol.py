"""Uvicorn's websocket protocol with limits that it lacks. Clients of our sockets only listen: what they send is answers
to pings and the end. Without a limit many small frames hold up everybody, since a read is handled in one go."""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode

CLIENT_BYTES = 16_000
CLIENT_SECONDS = 20.0


class ListenerProtocol(WebSocketsSansIOProtocol):
    """One websocket. It is closed if its client sends more than CLIENT_BYTES in CLIENT_SECONDS, or a head that cannot
    be read."""

    _client_bytes = 0
    _counted_since = 0.0

    def data_received(self, data: bytes) -> None:
        if self.handshake_initiated and self._too_much(len(data)):
            self._refuse()
            return
        super().data_received(data)
        if not self.handshake_initiated:
            self._answer_unreadable_head()

    def _too_much(self, count: int) -> bool:
        now = self.loop.time()
        if now - self._counted_since > CLIENT_SECONDS:
            self._counted_since, self._client_bytes = now, 0
        self._client_bytes += count
        return self._client_bytes > CLIENT_BYTES

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

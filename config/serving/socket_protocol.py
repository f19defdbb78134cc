"""A limit on what websocket clients send, for both servers, and uvicorn's websocket protocol with that limit. Clients
only listen, so they send nothing but pongs and close frames. Without a limit, many small frames would block the event
loop, since all frames of a read are handled at once."""

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

    def exceeded(self, count: int) -> bool:
        """Count bytes. Return True if there were more than CLIENT_BYTES within CLIENT_SECONDS."""
        now = time.monotonic()
        if now - self._since > CLIENT_SECONDS:
            self._since, self._count = now, 0
        self._count += count
        return self._count > CLIENT_BYTES


class ListenerProtocol(WebSocketsSansIOProtocol):
    """A websocket that is closed if its client sends more than CLIENT_BYTES in CLIENT_SECONDS, or an invalid
    handshake."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._sent = ClientBytes()

    def data_received(self, data: bytes) -> None:
        if self.handshake_initiated and self._sent.exceeded(len(data)):
            self._refuse()
            return
        super().data_received(data)
        if not self.handshake_initiated:
            self._answer_invalid_handshake()

    async def send(self, message: Any) -> None:
        await super().send(message)
        self.handshake_complete |= self.close_sent  # uvicorn reports a refusal with a status of ours as an error

    def _refuse(self) -> None:
        """Send the reason, and close without waiting for the client."""
        if self.transport.is_closing():
            return
        if self.handshake_complete and not self.close_sent:
            self.conn.fail(CloseCode.POLICY_VIOLATION, "this socket only sends")
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
        self.transport.close()

    def _answer_invalid_handshake(self) -> None:
        """Send the refusal that websockets prepared, since uvicorn starts no task for an invalid handshake."""
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.close()

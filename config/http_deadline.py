"""Uvicorn's HTTP protocol with limits that it lacks: on the head of a request, in seconds and bytes, and on what a
client sends after it was answered."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 15.0
HEAD_BYTES = 64_000
REST_SECONDS = 15.0


class DeadlineProtocol(HttpToolsProtocol):
    """One connection. It is closed if a head is too slow or too large, and if a client that has its answer takes too
    long to send the rest of its body."""

    _deadline: asyncio.TimerHandle | None = None
    _in_head = True
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._expect(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of this request is too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._deadline is None:
            self._expect(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._in_head, self._head_bytes = False, 0
        self._arrived()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        self._arrived()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._in_head and not self.transport.is_closing():
            self._expect(REST_SECONDS)

    def _expect(self, seconds: float) -> None:
        self._arrived()
        self._deadline = self.loop.call_later(seconds, self._give_up)

    def _arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()

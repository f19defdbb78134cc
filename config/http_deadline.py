"""Uvicorn's HTTP protocol with limits that it lacks: on the head of a request, in seconds and bytes, on what is sent
around the pieces of a body (extensions of chunks, trailers), and on what a client sends after it was answered."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 15.0
HEAD_BYTES = 64_000
REST_SECONDS = 15.0


class DeadlineProtocol(HttpToolsProtocol):
    """One connection. It is closed if a head is too slow or too large, if as much comes without a piece of the body,
    and if a client that has its answer takes too long to send the rest of its body. Trailers are dropped."""

    _deadline: asyncio.TimerHandle | None = None
    _in_head = True
    _bytes_beside_body = 0  # since the head began, or since the last piece of the body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._expect(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # One read may be several times as large as a head may be.
        while data and not self.transport.is_closing():
            room = HEAD_BYTES + 1 - self._bytes_beside_body if self._in_head else len(data)
            self._take(data[:room])
            data = data[room:]

    def _take(self, data: bytes) -> None:
        self._bytes_beside_body += len(data)
        super().data_received(data)
        if self._bytes_beside_body <= HEAD_BYTES or self.transport.is_closing():
            return
        if self._in_head:
            self.send_400_response("The head of this request is too large.")
        else:
            self.transport.close()  # the answer may have begun

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._deadline is None:
            self._expect(HEAD_SECONDS)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # uvicorn would add a trailer to the headers of a request that is being answered
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._bytes_beside_body = False, 0
        self._arrived()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._bytes_beside_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._bytes_beside_body = True, 0
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

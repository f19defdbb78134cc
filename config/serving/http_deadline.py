"""Uvicorn's HTTP protocol with limits that it lacks: on the head of a request, in seconds and bytes, on what is sent
around the pieces of a body (extensions of chunks, trailers), on what a client sends after it was answered, on how long
it may leave an answer unread, and on how many connections wait for something from their clients."""

import asyncio
import resource
from collections import OrderedDict

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 15.0
HEAD_BYTES = 64_000
REST_SECONDS = 15.0
UNREAD_SECONDS = 120.0
MOST_WAITING = 5_000
"""Connections without a whole request, or with none any more. Each takes a file and some memory, and needs no key."""
_waiting: "OrderedDict[DeadlineProtocol, None]" = OrderedDict()  # the longest first


def bound_waiting() -> None:
    """Let at most half of the files that this process may open be connections that wait."""
    global MOST_WAITING
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY:
        MOST_WAITING = min(MOST_WAITING, files // 2)


class DeadlineProtocol(HttpToolsProtocol):
    """One connection. It is closed if a head is too slow or too large, if as much comes without a piece of the body, if
    a client that has its answer takes too long to send the rest of its body, if a client reads nothing of its answer,
    and if it has waited the longest when too many do. Trailers are dropped."""

    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _in_head = True
    _bytes_beside_body = 0  # since the head began, or since the last piece of the body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._expect(HEAD_SECONDS)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        _waiting.pop(self, None)
        self._arrived()
        self._was_read()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reader()

    def resume_writing(self) -> None:
        self._was_read()
        super().resume_writing()

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
        if not self.flow.write_paused:
            self._was_read()  # who asks again has read on
        if self._deadline is None:
            self._expect(HEAD_SECONDS)

    def handle_websocket_upgrade(self) -> None:
        self._was_read()  # from here on another protocol is told what is read
        super().handle_websocket_upgrade()

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
        _waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._expect_reader()
        if self.transport.is_closing():
            return
        if not self._in_head:
            self._expect(REST_SECONDS)
        if self.cycle.response_complete:  # else the client has sent its next request already
            self._wait()

    def _wait(self) -> None:
        """Take a place among the connections that wait. If there are too many, the one that has waited the longest is
        closed."""
        _waiting.setdefault(self)
        while len(_waiting) > MOST_WAITING:
            longest, _ = _waiting.popitem(last=False)
            longest._give_up()

    def _expect_reader(self) -> None:
        self._was_read()
        self._unread = self.loop.call_later(UNREAD_SECONDS, self._give_up_unread)

    def _was_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _give_up_unread(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # closing would wait until all is read

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

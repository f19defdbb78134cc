"""Uvicorn's HTTP protocol with limits that it lacks: on the time and size of a request's head, on the overhead of a
chunked body (chunk extensions, trailers), on the rest of a body after the response, on the time until a client reads
its response, on the memory of unread responses, and on the number of connections that wait for their clients. Upgrades
to HTTP/2 are ignored."""

import asyncio
import resource
import sys
from collections import OrderedDict
from collections.abc import Callable

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_SECONDS = 15.0
HEAD_BYTES = 64_000
REST_SECONDS = 15.0
UNREAD_SECONDS = 120.0
MAX_WAITING = 5_000
"""Connections without a complete request: new and idle ones. Each takes a file and some memory, and needs no key."""
MAX_UNREAD_BYTES = 256_000_000
"""What this process holds of responses that their clients do not read. A single key can request gigabytes in two
minutes."""
_waiting: "OrderedDict[DeadlineProtocol, None]" = OrderedDict()  # longest waiting first
_unread: "dict[DeadlineProtocol, int]" = {}  # the bytes of each, longest unread first


def bound_waiting() -> None:
    """Limit waiting connections to half of the files that this process may open."""
    global MAX_WAITING
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY:
        MAX_WAITING = min(MAX_WAITING, files // 2)


class DeadlineProtocol(HttpToolsProtocol):
    """A connection that is closed if a head takes HEAD_SECONDS or has HEAD_BYTES, if a client sends HEAD_BYTES without
    any data of the body, takes REST_SECONDS for the rest of its body after the response, or does not read its response
    for UNREAD_SECONDS, if it has waited the longest when there are MAX_WAITING, and if it has the most to read when all
    have MAX_UNREAD_BYTES. Trailers are dropped."""

    _in_head = True
    _overhead_bytes = 0  # since the head began, or since the last data of the body

    _answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._start("request", HEAD_SECONDS, self._give_up)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        _waiting.pop(self, None)
        _unread.pop(self, None)
        for name in list(self._timers):
            self._stop(name)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start("reading", UNREAD_SECONDS, self._abort_unread)
        # The application keeps what it has not sent yet of a response whose length is known, such as a page.
        unsent = self._answering.expected_content_length if self._answering else 0
        _unread[self] = self.transport.get_write_buffer_size() + unsent
        while sum(_unread.values()) > MAX_UNREAD_BYTES:
            most = max(_unread, key=_unread.__getitem__)
            del _unread[most]
            most._abort_unread()

    def resume_writing(self) -> None:
        _unread.pop(self, None)
        self._stop("reading")
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        # A single read may be several times as large as the limit of a head.
        at = 0
        while at < len(data) and not self.transport.is_closing():
            room = HEAD_BYTES + 1 - self._overhead_bytes if self._in_head else len(data)
            self._head_again, self._parsed = b"", room
            self._receive(data[at : at + room])
            at += self._parsed
            if self._head_again:
                self._receive(self._head_again)

    def _receive(self, data: bytes) -> None:
        self._overhead_bytes += len(data)
        super().data_received(data)
        if self._overhead_bytes <= HEAD_BYTES or self.transport.is_closing():
            return
        if self._in_head:
            self.send_400_response("The head of this request is too large.")
        else:
            self.transport.close()  # the response may have begun

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self.flow.write_paused:
            self._stop("reading")  # a client that sends another request is reading
        if "request" not in self._timers:
            self._start("request", HEAD_SECONDS, self._give_up)

    def handle_websocket_upgrade(self) -> None:
        self._stop("reading")  # from now on the transport notifies another protocol
        _unread.pop(self, None)
        super().handle_websocket_upgrade()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # uvicorn would add a trailer to the headers of a request that is being answered
            super().on_header(name, value)

    def _ignores_upgrade(self) -> bool:
        """Return True for a request to upgrade to something else than a websocket, such as HTTP/2 (`h2c`), which Java's
        client sends with its first request."""
        return self.parser.should_upgrade() and not self._should_upgrade() and b"upgrade" in dict(self.headers)

    def _unsupported_upgrade_warning(self) -> None:
        """Have the head parsed again without its Upgrade header. The parser ends such a request after its head: the
        body was missing, and one that arrived later was taken for a request of its own."""
        error = sys.exception()
        if not self._ignores_upgrade() or not isinstance(error, httptools.HttpParserUpgrade):
            return
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        self._head_again, self._parsed = b"\r\n".join([*lines, b"", b""]), error.args[0]
        self._overhead_bytes = 0
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle  # while `cycle` may be a later request
        super()._start_asgi_task(cycle, app)

    def on_headers_complete(self) -> None:
        if self._ignores_upgrade():
            return
        self._in_head, self._overhead_bytes = False, 0
        self._stop("request")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._overhead_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._ignores_upgrade():
            return
        self._in_head, self._overhead_bytes = True, 0
        self._stop("request")
        _waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._start("reading", UNREAD_SECONDS, self._abort_unread)
        if self.transport.is_closing():
            return
        if not self._in_head:
            self._start("request", REST_SECONDS, self._give_up)
        if self.cycle.response_complete:  # otherwise the client has already sent its next request
            self._wait()

    def _wait(self) -> None:
        """Add this connection to those that wait. If there are too many, close the one that has waited the longest."""
        _waiting.setdefault(self)
        while len(_waiting) > MAX_WAITING:
            longest, _ = _waiting.popitem(last=False)
            longest._give_up()

    def _start(self, name: str, seconds: float, action: Callable[[], None]) -> None:
        """Set the time limit of a request or of reading its response."""
        self._stop(name)
        self._timers[name] = self.loop.call_later(seconds, action)

    def _stop(self, name: str) -> None:
        if timer := self._timers.pop(name, None):
            timer.cancel()

    def _abort_unread(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # close() would wait until everything is read

    def _give_up(self) -> None:
        self._stop("request")
        if not self.transport.is_closing():
            self.transport.close()

"""The loopback server on which a local app waits for the OAuth redirect after the consent page."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any
from urllib.parse import parse_qsl, urlsplit

PAGE = b'<!doctype html><link rel="icon" href="data:,"><p>You may close this page.'


class CallbackListener(ThreadingHTTPServer):
    """A server on a free loopback port. `callbacks` receives the query of each request."""

    def __init__(self) -> None:
        self.callbacks: Queue[dict[str, str]] = Queue()
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                listener.callbacks.put(dict(parse_qsl(urlsplit(self.path).query)))
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(PAGE)))
                self.end_headers()
                self.wfile.write(PAGE)

            def log_message(self, *args: Any) -> None:
                """Log nothing."""

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/callback"


@contextmanager
def listening() -> Iterator[CallbackListener]:
    """Run a listener until the block ends."""
    with CallbackListener() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()

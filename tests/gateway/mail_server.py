"""A mail server on loopback that accepts every mail."""

import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager


class MailServer(socketserver.ThreadingTCPServer):
    """`recipients` are the envelope recipients of the mails received so far. `refusals` are the answers to the
    next recipients, such as "451 later"; then each is taken."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.recipients: list[str] = []
        self.refusals: list[str] = []
        super().__init__(("127.0.0.1", 0), _Conversation)


class _Conversation(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say("220 mail.example.org")
        for line in self.rfile:
            verb, _, rest = line.decode().strip().partition(" ")
            verb = verb.upper()
            if verb == "RCPT" and self.server.refusals:
                self._say(self.server.refusals.pop(0))
                continue
            if verb == "RCPT":
                self.server.recipients.append(rest.partition("<")[2].rstrip(">"))
            if verb == "DATA":
                self._say("354 go on")
                while self.rfile.readline() not in {b".\r\n", b""}:
                    pass
                self._say("250 accepted")
            else:
                self._say("221 bye" if verb == "QUIT" else "250 ok")

    def _say(self, answer: str) -> None:
        self.wfile.write(f"{answer}\r\n".encode())


@contextmanager
def mail_server() -> Generator[MailServer]:
    """Yield a server that listens until the block ends."""
    with MailServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()

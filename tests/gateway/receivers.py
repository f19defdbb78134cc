"""Receivers of webhooks on loopback, and what tests of deliveries do."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gateway.jobs import lease_take
from gateway.models import Webhook
from gateway.webhooks.delivery import LEASE, deliver
from gateway.webhooks.services import KINDS, webhook_create
from memories.audit.log import SYSTEM
from memories.messaging.outbox import notify
from memories.models import Notification, Owner


class Receiver:
    """A server on loopback that keeps what it was sent, calls `asked`, waits while `held` is not set, and answers as
    `answers` says, else 204."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.asked: Callable[[], None] | None = None
        self.held = threading.Event()
        self.held.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                if receiver.asked:
                    receiver.asked()
                receiver.held.wait(5)
                status, headers = receiver.answers.pop(0) if receiver.answers else (204, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?token=hidden"

    def close(self) -> None:
        self.held.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def numbers(self) -> list[str]:
        return [json.loads(body)["data"]["id"] for _, body in self.got]


def hook(owner: Owner, url: str, *kinds: str) -> tuple[Webhook, str]:
    return webhook_create(owner.pk, url=url, kinds=kinds or KINDS, by=SYSTEM)


def work() -> int:
    """One job of the worker."""
    token = lease_take(LEASE, seconds=60)
    assert token is not None
    return deliver(str(token))


def told(owner: Owner, kind: str = "memory.changed") -> Notification:
    return notify(owner_id=owner.pk, kind=Notification.Kind(kind), memory_numbers=[1])

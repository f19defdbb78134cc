"""A webhook receiver on loopback, and helpers for testing deliveries."""

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
    """A server on loopback that records each request in `received`, calls `on_request`, waits until `may_answer` is
    set, and answers with the next of `answers`, or 204 if there is none."""

    def __init__(self) -> None:
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.on_request: Callable[[], None] | None = None
        self.may_answer = threading.Event()
        self.may_answer.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
                if receiver.on_request:
                    receiver.on_request()
                receiver.may_answer.wait(5)
                status, headers = receiver.answers.pop(0) if receiver.answers else (204, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?token=hidden"

    def close(self) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def notification_ids(self) -> list[str]:
        return [json.loads(body)["data"]["id"] for _, body in self.received]


def webhook_make(owner: Owner, url: str, *kinds: str) -> tuple[Webhook, str]:
    return webhook_create(owner.pk, url=url, kinds=kinds or KINDS, by=SYSTEM)


def delivery_run() -> int:
    """Do one delivery job as the worker does."""
    token = lease_take(LEASE, seconds=60)
    assert token is not None
    return deliver(str(token))


def notification_make(owner: Owner, kind: str = "memory.changed") -> Notification:
    return notify(owner_id=owner.pk, kind=Notification.Kind(kind), memory_numbers=[1])

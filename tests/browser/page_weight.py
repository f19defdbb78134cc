"""What a page asks a server for: Chromium's own account of requests and of bytes on the wire."""

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page


@dataclass
class Weight:
    """What came for a page since `weighed`: kind, address and bytes on the wire of each request. What the browser had
    already is not among it."""

    requests: list[tuple[str, str, int]] = field(default_factory=list)

    def bytes_but(self, kind: str) -> int:
        """Bytes of all but one kind ("Font")."""
        return sum(size for each, _, size in self.requests if each != kind)


def weighed(page: Page) -> Weight:
    """Weigh what the page asks for from now on."""
    weight = Weight()
    asked: dict[str, tuple[str, str]] = {}
    session = page.context.new_cdp_session(page)

    def ask(event: dict[str, Any]) -> None:
        if not event["request"]["url"].startswith("data:"):
            asked[event["requestId"]] = event.get("type", "Other"), event["request"]["url"]

    def answer(event: dict[str, Any]) -> None:
        if event["response"].get("fromDiskCache"):
            asked.pop(event["requestId"], None)

    def come(event: dict[str, Any]) -> None:
        if request := asked.get(event["requestId"]):
            weight.requests.append((*request, int(event["encodedDataLength"])))

    session.on("Network.requestWillBeSent", ask)
    session.on("Network.requestServedFromCache", lambda event: asked.pop(event["requestId"], None))
    session.on("Network.responseReceived", answer)
    session.on("Network.loadingFinished", come)
    session.send("Network.enable")
    return weight

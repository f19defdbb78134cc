"""Measure a page's requests and their bytes on the wire, as Chromium reports them."""

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page


@dataclass
class Weight:
    """A page's requests: type, URL and bytes on the wire of each. Requests served from the cache are left out."""

    requests: list[tuple[str, str, int]] = field(default_factory=list)

    def bytes_without(self, kind: str) -> int:
        """Return the bytes of all requests except those of one type ("Font")."""
        return sum(size for each, _, size in self.requests if each != kind)


def record_weight(page: Page) -> Weight:
    """Record what the page requests from now on."""
    weight = Weight()
    pending: dict[str, tuple[str, str]] = {}
    session = page.context.new_cdp_session(page)

    def request_sent(event: dict[str, Any]) -> None:
        if not event["request"]["url"].startswith("data:"):
            pending[event["requestId"]] = event.get("type", "Other"), event["request"]["url"]

    def response_received(event: dict[str, Any]) -> None:
        if event["response"].get("fromDiskCache"):
            pending.pop(event["requestId"], None)

    def loading_finished(event: dict[str, Any]) -> None:
        if request := pending.get(event["requestId"]):
            weight.requests.append((*request, int(event["encodedDataLength"])))

    session.on("Network.requestWillBeSent", request_sent)
    session.on("Network.requestServedFromCache", lambda event: pending.pop(event["requestId"], None))
    session.on("Network.responseReceived", response_received)
    session.on("Network.loadingFinished", loading_finished)
    session.send("Network.enable")
    return weight

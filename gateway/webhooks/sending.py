"""Sends one delivery of a webhook: a signed POST with a time limit, to a checked address, without redirects. Only the
status of the response matters."""

import asyncio
import logging
from dataclasses import dataclass

import aiohttp
from yarl import URL

from gateway.upstream.faults import parse_retry_after
from gateway.webhooks.addresses import AddressRefused, CheckedResolver, literal_refused

logger = logging.getLogger("daybook.webhooks")
SECONDS = 10.0
"""Maximum time of a delivery, including name resolution."""
ANSWER_BYTES = 16_000
"""Maximum bytes read of a response."""
_GONE = 410


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """The outcome of a delivery. `failure` is the reason of a failure, or ""; `gone` is True for status 410; `wait` is
    the Retry-After in seconds, at most an hour."""

    failure: str = ""
    gone: bool = False
    wait: float = 0.0


def client() -> aiohttp.ClientSession:
    """Return a client for deliveries in the running loop, which the caller closes. It keeps no cookies, and uses no
    proxy, which would resolve the name itself."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=CheckedResolver(), use_dns_cache=False, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=SECONDS),
        auto_decompress=False,
        trust_env=False,
    )


async def send(session: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str]) -> DeliveryOutcome:
    """Send a delivery once. Errors of the receiver are returned, not raised."""
    try:
        async with asyncio.timeout(SECONDS):
            # A literal address is not resolved, so the resolver does not check it.
            if literal_refused(URL(url).host or ""):
                return DeliveryOutcome("Webhooks may not be sent to this address.")
            sent = {"content-type": "application/json", "user-agent": "Daybook-Webhooks/1", **headers}
            async with session.post(url, data=body, headers=sent, allow_redirects=False) as answer:
                status, wait = answer.status, parse_retry_after(answer.headers.get("Retry-After", ""))
                await answer.content.read(ANSWER_BYTES)
    except TimeoutError:
        return DeliveryOutcome(f"There was no answer within {SECONDS:.0f} s.")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        if isinstance(error, AddressRefused) or isinstance(error.__cause__, AddressRefused):
            return DeliveryOutcome("Its name has no address that webhooks may be sent to.")
        return DeliveryOutcome(f"It could not be reached ({type(error).__name__}).")
    except Exception as error:  # noqa: BLE001 - one webhook must not fail the others of the job
        logger.error("a webhook could not be sent: %s", type(error).__name__)
        return DeliveryOutcome(f"It could not be sent ({type(error).__name__}).")
    if status // 100 == 2:
        return DeliveryOutcome()
    return DeliveryOutcome(f"It answered {status}.", gone=status == _GONE, wait=wait)

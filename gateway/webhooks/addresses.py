"""Checks the addresses of webhooks: http and https, and only public ones unless the operator allows others. A host name
is resolved when a delivery connects, and the connection uses the address that was checked."""

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from aiohttp import ThreadedResolver
from aiohttp.abc import ResolveResult
from django.conf import settings

from gateway.web_addresses import url_parts
from memories.errors import InvalidRequest

URL_LENGTH = 2_000
_NAT64 = IPv6Network("64:ff9b::/96")  # IPv4 behind NAT64
# Python's `is_global` also includes site-local addresses, local NAT64 and, in old versions, 192.0.0.0/24.
_PUBLIC = (IPv6Network("2000::/3"), _NAT64)
_PROTOCOLS = IPv4Network("192.0.0.0/24")
_NOT_PUBLIC = (
    "A webhook goes to a public address. For one of a private network the operator sets DAYBOOK_WEBHOOKS_PRIVATE."
)


class AddressRefused(OSError):
    """A host name has no address that is allowed for webhooks."""


def checked_url(url: str) -> str:
    """Return a webhook's URL, normalised, if it is allowed. Does not resolve the host name. Raises InvalidRequest."""
    if len(url) > URL_LENGTH:
        raise InvalidRequest(f"url has at most {URL_LENGTH} characters.", param="url")
    parts = url_parts(url)
    plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    if parts is None or not parts.hostname or not plain or parts.scheme not in {"http", "https"}:
        raise InvalidRequest("url is an address such as https://example.org/hook.", param="url")
    if parts.username is not None or parts.password is not None:
        raise InvalidRequest("url has no name and no password in it.", param="url")
    if literal_refused(parts.hostname):
        raise InvalidRequest(_NOT_PUBLIC, param="url")
    return parts._replace(fragment="").geturl()


def literal_refused(host: str) -> bool:
    """Return True for a literal IP address, in any notation, that is not allowed for webhooks."""
    host = host.removesuffix(".")  # of a name without a search domain
    if host == "localhost" or host.endswith(".localhost"):
        return not settings.WEBHOOKS_PRIVATE
    try:
        # The system's resolver also accepts 127.1, 0x7f000001 and 2130706433. With an unknown zone it would treat the
        # address as a name.
        found = socket.getaddrinfo(host.partition("%")[0], None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return False
    return not all(may_be_reached(str(entry[4][0])) for entry in found)


def may_be_reached(address: str) -> bool:
    """Return True for a network address that is allowed for webhooks."""
    if settings.WEBHOOKS_PRIVATE:
        return True
    return all(map(_is_public, _embedded(ip_address(address.partition("%")[0]))))


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if not address.is_global or address.is_multicast or address in _PROTOCOLS:
        return False
    return address.version == 4 or any(address in network for network in _PUBLIC)


def _embedded(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    yield address
    if isinstance(address, IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
        yield from (found for found in inner if found is not None)


class CheckedResolver(ThreadedResolver):
    """Resolves host names for aiohttp, and returns only addresses that are allowed for webhooks."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the allowed addresses of a host. Raises AddressRefused if there are none. The error does not tell if
        the name exists, which nobody should learn of a private network."""
        try:
            found = await super().resolve(host, port, family)
        except (OSError, UnicodeError):
            found = []
        allowed = [each for each in found if may_be_reached(each["host"])]
        if not allowed:
            raise AddressRefused("This name has no address that webhooks may be sent to.")
        return allowed

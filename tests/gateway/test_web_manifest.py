"""The web app manifest, its icons, and the theme colours"""

import struct

from django.test import Client

from tests.pages import html_of


def size_of(png: bytes) -> str:
    """Return "WIDTHxHEIGHT" from the header of a PNG."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return f"{width}x{height}"


def test_the_manifest_is_public_and_describes_its_icons() -> None:
    client = Client()
    answer = client.get("/manifest.webmanifest")
    assert answer.headers["Content-Type"] == "application/manifest+json"
    manifest = answer.json()
    assert (manifest["start_url"], manifest["scope"], manifest["display"]) == ("/", "/", "standalone")
    assert {icon["purpose"] for icon in manifest["icons"]} == {"any", "maskable"}
    for icon in manifest["icons"]:
        picture = client.get(icon["src"])
        assert picture.headers["Content-Type"].startswith(icon["type"]), icon
        content = b"".join(picture)
        assert len(content) < 12_000, "icons are kept small"
        if icon["type"] == "image/png":
            assert size_of(content) == icon["sizes"]
        else:
            assert icon["sizes"] == "any"


def test_pages_link_the_manifest_and_set_theme_colours() -> None:
    page = html_of(Client(), "/login/")
    assert '<link rel="manifest" href="/manifest.webmanifest">' in page
    for scheme in ("light", "dark"):
        assert f'<meta name="theme-color" media="(prefers-color-scheme: {scheme})"' in page

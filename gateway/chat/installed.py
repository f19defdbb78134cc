"""The web app manifest, which lets a browser install Daybook like an application.

There is no service worker: without its server Daybook could show nothing useful, and browsers install pages without
one."""

from django.http import HttpRequest, JsonResponse
from django.templatetags.static import static

_PAPER = "#f3f6f0"  # --paper and --sunk of static/gateway/tokens.css, by day
_SUNK = "#e6ece3"
_ICONS = (
    ("gateway/icons/app.svg", "any", "image/svg+xml", "any"),
    ("gateway/icons/app-192.png", "192x192", "image/png", "any"),
    ("gateway/icons/app-512.png", "512x512", "image/png", "any"),
    ("gateway/icons/app-full-512.png", "512x512", "image/png", "maskable"),
)


def manifest(request: HttpRequest) -> JsonResponse:
    """Return the manifest. It is the same for everybody, signed in or not."""
    answer = JsonResponse(
        {
            "id": "/",
            "name": "Daybook",
            "short_name": "Daybook",
            "description": "Chat with an agent that remembers, and see and edit what it remembers.",
            "start_url": "/",
            "scope": "/",
            "display": "standalone",
            "background_color": _PAPER,
            "theme_color": _SUNK,
            "icons": [
                {"src": static(name), "sizes": sizes, "type": kind, "purpose": purpose}
                for name, sizes, kind, purpose in _ICONS
            ],
            "shortcuts": [{"name": "New session", "url": "/new/"}, {"name": "Memories", "url": "/memories/"}],
        },
        content_type="application/manifest+json",
    )
    answer.headers["Cache-Control"] = "public, max-age=3600"
    return answer

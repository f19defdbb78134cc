"""The theme and sidebar of the admin (UNFOLD, for config.settings). Imports no models, since settings are read before
apps are loaded."""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse

Item = dict[str, Any]
_SHADE_NAMES = ["50", "100", "200", "300", "400", "500", "600", "700", "800", "900", "950"]


def _static(path: str) -> Callable[[HttpRequest], str]:
    return lambda request: static(path)


def _may_view(app: str, model: str) -> Callable[[HttpRequest], bool]:
    def permission(request: HttpRequest) -> bool:
        return any(request.user.has_perm(f"{app}.{verb}_{model}") for verb in ("view", "change"))

    return permission


def _item(title: str, icon: str, app: str, model: str) -> Item:
    return {
        "title": title,
        "icon": icon,
        "link": reverse(f"admin:{app}_{model}_changelist"),
        "permission": _may_view(app, model),
    }


@cache
def _navigation() -> list[dict[str, Any]]:
    """Return the sections of the sidebar. Their links are resolved once, since the theme asks for each several times
    per page."""
    return [{"title": title, "items": [_item(*page) for page in pages]} for title, pages in _PAGES.items()]


def _shades(values: str) -> dict[str, str]:
    """Return a colour's eleven shades by name. `values` has lightness, chroma and hue of each, lightest first."""
    return {name: f"oklch({value})" for name, value in zip(_SHADE_NAMES, values.split(", "), strict=True)}


# By section: title, icon, app and model of each page.
_PAGES: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "Memory": (
        ("Memories", "menu_book", "memories", "memory"),
        ("Revisions", "history", "memories", "revision"),
        ("Change sets", "layers", "memories", "changeset"),
        ("Books", "book", "memories", "book"),
        ("Owners", "person", "memories", "owner"),
    ),
    "Conversations": (
        ("Sessions", "forum", "gateway", "session"),
        ("Runs", "play_circle", "gateway", "run"),
        ("Review runs", "visibility", "reviews", "reviewrun"),
    ),
    "Consolidation": (
        ("Consolidation runs", "stacks", "reviews", "consolidationrun"),
        ("Artifacts", "description", "memories", "artifact"),
        ("Extractions", "notes", "reviews", "extraction"),
        ("Leases", "hourglass_empty", "memories", "lease"),
    ),
    "Settings": (
        ("Agents", "smart_toy", "gateway", "agent"),
        ("Memory settings", "tune", "gateway", "configuration"),
        ("API keys", "key", "gateway", "apikey"),
        ("Connected apps", "extension", "gateway", "connectedapp"),
        ("Webhooks", "webhook", "gateway", "webhook"),
        ("Users", "group", "auth", "user"),
        ("Invitations", "mail", "gateway", "invitation"),
        ("Groups", "groups", "auth", "group"),
    ),
    "Operation": (
        ("Usage", "bar_chart", "gateway", "usageday"),
        ("Workers", "memory", "gateway", "worker"),
        ("Learned changes", "school", "gateway", "learnedchange"),
        ("Notifications", "notifications", "memories", "notification"),
        ("Book limits", "straighten", "memories", "booklimits"),
        ("Audit log", "fact_check", "memories", "auditentry"),
    ),
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Daybook",
    "SITE_HEADER": "Daybook",
    "SITE_SUBHEADER": "Administration",
    "SITE_ICON": _static("admin/daybook.svg"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _static("admin/daybook.svg")}],
    "STYLES": [_static("admin/daybook.css")],
    "DASHBOARD_CALLBACK": "reviews.admin.dashboard.dashboard",
    "SHOW_HISTORY": False,  # memories have their own history, and the admin's log has a page
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "3px",
    "COLORS": {
        "base": _shades(
            "97.9% 0.006 129, 93.6% 0.014 135, 87.5% 0.019 138, 80.2% 0.022 141, 67% 0.021 148, 55% 0.018 160, "
            "48.1% 0.016 174, 41.2% 0.017 180, 33.5% 0.014 189, 25.3% 0.01 197, 21.6% 0.009 197"
        ),
        "primary": _shades(
            "96.2% 0.011 257, 92.7% 0.018 253, 87% 0.04 255, 80.2% 0.083 257, 73.3% 0.105 256, 66.8% 0.122 255, "
            "42.3% 0.118 257, 37.1% 0.103 257, 35.5% 0.099 257, 28.1% 0.07 257, 21.5% 0.038 256"
        ),
    },
    "SIDEBAR": {"show_search": False, "show_all_applications": False, "navigation": lambda request: _navigation()},
}

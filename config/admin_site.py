"""How the admin looks and what stands in its sidebar; config.settings takes UNFOLD from here.
Imports no model: settings are read before the apps are there."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy

Item = dict[str, Any]


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
        "link": reverse_lazy(f"admin:{app}_{model}_changelist"),
        "permission": _may_view(app, model),
    }


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Daybook",
    "SITE_HEADER": "Daybook",
    "SITE_SUBHEADER": "Administration",
    "SITE_ICON": _static("admin/daybook.svg"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _static("admin/daybook.svg")}],
    "STYLES": [_static("admin/daybook.css")],
    "DASHBOARD_CALLBACK": "reviews.admin.dashboard.dashboard",
    "SHOW_HISTORY": False,  # a memory's history stands beside it; the admin's own log has a page
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "3px",
    "COLORS": {
        "base": {
            "50": "oklch(97.9% 0.006 129)",
            "100": "oklch(93.6% 0.014 135)",
            "200": "oklch(87.5% 0.019 138)",
            "300": "oklch(80.2% 0.022 141)",
            "400": "oklch(67% 0.021 148)",
            "500": "oklch(55% 0.018 160)",
            "600": "oklch(48.1% 0.016 174)",
            "700": "oklch(41.2% 0.017 180)",
            "800": "oklch(33.5% 0.014 189)",
            "900": "oklch(25.3% 0.01 197)",
            "950": "oklch(21.6% 0.009 197)",
        },
        "primary": {
            "50": "oklch(96.2% 0.011 257)",
            "100": "oklch(92.7% 0.018 253)",
            "200": "oklch(87% 0.04 255)",
            "300": "oklch(80.2% 0.083 257)",
            "400": "oklch(73.3% 0.105 256)",
            "500": "oklch(66.8% 0.122 255)",
            "600": "oklch(42.3% 0.118 257)",
            "700": "oklch(37.1% 0.103 257)",
            "800": "oklch(35.5% 0.099 257)",
            "900": "oklch(28.1% 0.07 257)",
            "950": "oklch(21.5% 0.038 256)",
        },
    },
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": [
            {
                "title": "Memory",
                "items": [
                    _item("Memories", "menu_book", "memories", "memory"),
                    _item("Revisions", "history", "memories", "revision"),
                    _item("Change sets", "layers", "memories", "changeset"),
                    _item("Books", "book", "memories", "book"),
                    _item("Owners", "person", "memories", "owner"),
                ],
            },
            {
                "title": "Conversations",
                "items": [
                    _item("Sessions", "forum", "gateway", "session"),
                    _item("Runs", "play_circle", "gateway", "run"),
                    _item("Review runs", "visibility", "reviews", "reviewrun"),
                ],
            },
            {
                "title": "Consolidation",
                "items": [
                    _item("Consolidation runs", "stacks", "reviews", "consolidationrun"),
                    _item("Artifacts", "description", "memories", "artifact"),
                    _item("Extractions", "notes", "reviews", "extraction"),
                    _item("Leases", "hourglass_empty", "memories", "lease"),
                ],
            },
            {
                "title": "Settings",
                "items": [
                    _item("Agents", "smart_toy", "gateway", "agent"),
                    _item("Memory settings", "tune", "gateway", "configuration"),
                    _item("API keys", "key", "gateway", "apikey"),
                    _item("Connected apps", "extension", "gateway", "connectedapp"),
                    _item("Webhooks", "webhook", "gateway", "webhook"),
                    _item("Users", "group", "auth", "user"),
                    _item("Invitations", "mail", "gateway", "invitation"),
                    _item("Groups", "groups", "auth", "group"),
                ],
            },
            {
                "title": "Operation",
                "items": [
                    _item("Usage", "bar_chart", "gateway", "usageday"),
                    _item("Workers", "memory", "gateway", "worker"),
                    _item("Learned changes", "school", "gateway", "learnedchange"),
                    _item("Notifications", "notifications", "memories", "notification"),
                    _item("Book limits", "straighten", "memories", "booklimits"),
                    _item("Audit log", "fact_check", "memories", "auditentry"),
                ],
            },
        ],
    },
}

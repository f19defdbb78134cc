"""`manage.py assets`: prepare the static files, as the first web process of a version does. For container images, which
are built once and then only read."""

from typing import Any

from django.core.management.base import BaseCommand

from config.serving.assets import prepare_assets


class Command(BaseCommand):
    help = "Join, name and compress the static files in DAYBOOK_STATIC."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        prepare_assets()

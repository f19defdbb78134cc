"""`manage.py assets`: prepare the static files, as the first web process of a version does. For container images, whose
file system is read-only later."""

from typing import Any

from django.core.management.base import BaseCommand

from config.serving.assets import prepare_assets


class Command(BaseCommand):
    help = "Join, hash and compress the static files into DAYBOOK_STATIC."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        prepare_assets()

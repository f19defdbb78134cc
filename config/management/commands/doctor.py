"""`manage.py doctor`: check the installation. The exit code is 1 if a check failed, otherwise 0."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from config.doctor import findings
from config.findings import Level


class Command(BaseCommand):
    help = "Check configuration, disk, database, migrations, worker, queue, upstreams and stuck runs."
    requires_system_checks: list[str] = []  # reported as the first finding

    def handle(self, *args: Any, **options: Any) -> None:
        failed = False
        styles = {Level.OK: self.style.SUCCESS, Level.WARNING: self.style.WARNING, Level.FAILED: self.style.ERROR}
        for finding in findings():
            failed = failed or finding.level is Level.FAILED
            self.stdout.write(f"{styles[finding.level](f'{finding.level.value:8}')} {finding.check}: {finding.text}")
        sys.exit(1 if failed else 0)

#!/usr/bin/env python
"""Daybook's command line: `python manage.py help` lists what it can do."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import DatabaseError, connection

from config import collector
from config.environment import ConfigurationError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    collector.pause()  # config.apps lets it go on
    try:
        execute_from_command_line(sys.argv)
    except ConfigurationError as error:
        sys.exit(f"daybook: {error}")
    except DatabaseError:
        if connection.introspection.table_names():
            raise
        sys.exit("daybook: this database is empty yet. Run `python manage.py up` (or `prepare`) first.")


if __name__ == "__main__":
    main()

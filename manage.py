#!/usr/bin/env python
"""Daybook's command line: `python manage.py help` lists the commands."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import DatabaseError, connection

from config.databases import unusable_database
from config.environment import ConfigurationError
from config.serving import collector


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    collector.pause()  # config.apps resumes it
    try:
        execute_from_command_line(sys.argv)
    except ConfigurationError as error:
        sys.exit(f"daybook: {error}")
    except DatabaseError:
        if _has_tables():
            raise
        sys.exit("daybook: this database is still empty. Run `python manage.py up` (or `prepare`) first.")


def _has_tables() -> bool:
    """Return False if nothing was migrated yet. Exit if the database cannot be queried."""
    try:
        return bool(connection.introspection.table_names())
    except DatabaseError as error:
        sys.exit(f"daybook: {unusable_database(error)}")


if __name__ == "__main__":
    main()

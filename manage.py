#!/usr/bin/env python
"""Daybook's command line: `python manage.py help` lists what it can do."""

import os
import sys

from django.core.management import execute_from_command_line

from config.environment import ConfigurationError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        execute_from_command_line(sys.argv)
    except ConfigurationError as error:
        sys.exit(f"daybook: {error}")


if __name__ == "__main__":
    main()

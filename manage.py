#!/usr/bin/env python
"""Daybook's command line: `python manage.py help` lists the commands."""

import os
import sys
from pathlib import Path

from django.core.management import execute_from_command_line
from django.db import DatabaseError
from django.utils.module_loading import import_string

from config.environment import ConfigurationError
from config.processes.forking import without_reader
from config.serving import collector


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    collector.pause()  # config.apps resumes it
    _open_closed_streams()
    if sys.stdout.encoding != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # an export must not depend on the locale
    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except ConfigurationError as error:
        sys.exit(f"daybook: {error}")
    except DatabaseError as error:
        # By name, since it imports models, which need the settings.
        if not (problem := import_string("config.health.database_problem")(error)):
            raise
        sys.exit(f"daybook: {problem}")
    except UnicodeEncodeError:
        if not any("\udc80" <= character <= "\udcff" for argument in sys.argv for character in argument):
            raise
        sys.exit(
            "daybook: an argument contains bytes that are not UTF-8. Type it again, in a terminal that uses UTF-8."
        )
    except BrokenPipeError:
        sys.exit(without_reader())
    except KeyboardInterrupt:
        sys.exit(130)


def _open_closed_streams() -> None:
    """Replace standard streams that the caller has closed (`>&-` in a crontab), which are None, here and in the
    programs that this one starts or becomes."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - until the program ends
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


if __name__ == "__main__":
    main()

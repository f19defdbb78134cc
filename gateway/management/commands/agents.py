"""`manage.py agents apply | export | schema`: the agents file."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.agents.file import agents_file_schema, apply_file, export
from memories.errors import DomainError


class Command(BaseCommand):
    help = "Apply an agents file, print the agents as one, or print the JSON Schema of such a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="apply|export|schema")
        apply = verbs.add_parser("apply", help="create or change what the file contains; everything else stays")
        apply.add_argument("file", type=Path)
        verbs.add_parser("export", help="print agents and memory settings as a file")
        verbs.add_parser("schema", help="print the JSON Schema of the file, with descriptions")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        if verb == "export":
            self.stdout.write(export(), ending="")
        elif verb == "schema":
            self.stdout.write(json.dumps(agents_file_schema(), indent=2, ensure_ascii=False))
        else:
            try:
                names = apply_file(options["file"])
            except DomainError as error:
                raise CommandError(str(error)) from None
            self.stdout.write(f"Applied {', '.join(names)}." if names else "Applied. The file names no agents.")

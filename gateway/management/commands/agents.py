"""`manage.py agents apply | delete | export | schema`: agents and the agents file."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.agents.file import agents_file_schema, apply_file, export
from gateway.services import agent_delete
from memories.errors import DomainError


class Command(BaseCommand):
    help = "Apply an agents file, delete an agent, print the agents as a file, or print the JSON Schema of such a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="apply|delete|export|schema")
        apply = verbs.add_parser("apply", help="create or change what the file contains; everything else stays")
        apply.add_argument("file", type=Path)
        delete = verbs.add_parser("delete", help="delete an agent that has no sessions")
        delete.add_argument("name")
        verbs.add_parser("export", help="print agents and memory settings as a file")
        verbs.add_parser("schema", help="print the JSON Schema of the file, with descriptions")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        if verb == "export":
            self.stdout.write(export(), ending="")
        elif verb == "schema":
            self.stdout.write(json.dumps(agents_file_schema(), indent=2, ensure_ascii=False))
        else:
            try:
                self.stdout.write(self._change(verb, **options))
            except DomainError as error:
                raise CommandError(str(error)) from None

    def _change(self, verb: str, **options: Any) -> str:
        """Apply a file or delete an agent, and return what was done."""
        if verb == "delete":
            agent_delete(options["name"])
            return f"Deleted {options['name']}."
        names = apply_file(options["file"])
        return f"Applied {', '.join(names)}." if names else "Applied. The file names no agents."

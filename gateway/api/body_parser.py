"""How the native API reads bodies: as the OpenAI API does, so that a database takes every text in them."""

from typing import Any, cast

from django.http import HttpRequest
from ninja.parser import Parser

from memories.json_input import read_json


class BodyParser(Parser):
    """ninja answers 400 for any exception of it."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        return cast(dict[str, Any], read_json(request.body))

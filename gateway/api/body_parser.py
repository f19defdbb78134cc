"""The parser of the native API's bodies, and of queries. Like the OpenAI API, it makes sure that every text in a body
can be stored in a database."""

from typing import Any, cast

from django.http import HttpRequest
from ninja.parser import Parser

from memories.database.access import in_read_thread
from memories.errors import InvalidRequest
from memories.json_input import read_json

_PARSED = "_parsed_ahead"


class BodyParser(Parser):
    """A parser whose exceptions ninja answers with 400."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        parsed = getattr(request, _PARSED, None)
        if isinstance(parsed, InvalidRequest):
            raise parsed
        return cast(dict[str, Any], read_json(request.body) if parsed is None else parsed)

    def parse_querydict(self, data: Any, list_fields: list[str], request: HttpRequest) -> dict[str, Any]:
        """Return the parameters of a query. One without a value is like none in a request that only reads: a script
        whose variable is empty must not forget everything instead of one book."""
        found = super().parse_querydict(data, list_fields, request)
        return {name: value for name, value in found.items() if value != "" or request.method != "GET"}


async def parse_ahead(request: HttpRequest) -> None:
    """Parse a large JSON body of the native API in a thread, so that it does not block the event loop."""
    if request.content_type != "application/json" or not request.path_info.startswith("/api/"):
        return
    try:
        parsed = await in_read_thread(read_json, request.body)
    except InvalidRequest as error:
        parsed = error
    setattr(request, _PARSED, parsed)

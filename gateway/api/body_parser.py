"""How the native API reads bodies: as the OpenAI API does, so that a database takes every text in them."""

from typing import Any, cast

from django.http import HttpRequest
from ninja.parser import Parser

from memories.database.access import in_read_thread
from memories.errors import InvalidRequest
from memories.json_input import read_json

_READ = "_read_ahead"


class BodyParser(Parser):
    """ninja answers 400 for any exception of it."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        read = getattr(request, _READ, None)
        if isinstance(read, InvalidRequest):
            raise read
        return cast(dict[str, Any], read_json(request.body) if read is None else read)


async def read_ahead(request: HttpRequest) -> None:
    """Read a large JSON body of the native API in a thread: on the event loop every other request would wait for it."""
    if request.content_type != "application/json" or not request.path_info.startswith("/api/"):
        return
    try:
        read = await in_read_thread(read_json, request.body)
    except InvalidRequest as error:
        read = error
    setattr(request, _READ, read)

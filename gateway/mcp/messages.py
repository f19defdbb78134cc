"""JSON-RPC 2.0 as the Model Context Protocol uses it: parsing of messages, and errors. Pure functions."""

from dataclasses import dataclass, field
from typing import Any

from memories.errors import InvalidRequest
from memories.json_input import read_json
from memories.limits import SHORT_LENGTH

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
RESOURCE_NOT_FOUND = -32002  # up to 2025-11-25; later versions use INVALID_PARAMS
NOT_PERMITTED = -32010  # our own
MAX_BATCH = 20

Id = str | int


class RpcError(Exception):
    """A JSON-RPC error for the client. `id` is None if the id of the request could not be read."""

    def __init__(self, code: int, message: str, *, id: Id | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = id
        self.data = data

    def as_json(self, id: Id | None) -> dict[str, Any]:
        """Return the error as the answer to the request with this id."""
        error: dict[str, Any] = {"code": self.code, "message": str(self)}
        if self.data is not None:
            error["data"] = self.data
        return {"jsonrpc": "2.0", "id": id, "error": error}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a client. `id` is None if it gets no answer, as notifications and answers to us."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    id: Id | None = None


def read_messages(body: bytes) -> tuple[list[Message], bool]:
    """Return the messages of a body, and whether it is a batch (in versions up to 2025-03-26). Raises RpcError."""
    try:
        data = read_json(body, repair=True)
    except InvalidRequest as error:
        raise RpcError(PARSE_ERROR, str(error)) from None
    if not isinstance(data, list):
        return [_read(data)], False
    if not 1 <= len(data) <= MAX_BATCH:
        raise RpcError(INVALID_REQUEST, f"A batch must have 1 to {MAX_BATCH} messages.")
    return [_read(item) for item in data], True


def _read(data: Any) -> Message:
    if not isinstance(data, dict) or data.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "Each message must be a JSON-RPC 2.0 object.")
    if "method" not in data and ("result" in data or "error" in data):
        return Message(method="")  # an answer, although we send no requests
    id = data.get("id")
    if "id" in data and (isinstance(id, bool) or not isinstance(id, str | int)):
        raise RpcError(INVALID_REQUEST, "id must be a string or a whole number.")
    if isinstance(id, str) and len(id) > SHORT_LENGTH:
        raise RpcError(INVALID_REQUEST, f"id must have at most {SHORT_LENGTH} characters.")
    if not isinstance(data.get("method"), str):
        raise RpcError(INVALID_REQUEST, "method is missing.", id=id)
    params = data.get("params")
    if params is None:  # some clients send null
        params = {}
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object.", id=id)
    return Message(method=data["method"], params=params, id=id)

"""Request bodies for turns of the native API: the message, the client's own tools, and the results of their calls."""

from typing import Annotated, Any, Literal

from django.conf import settings
from ninja import Schema
from pydantic import Field, StrictBool, StringConstraints

from gateway.api.openai_body import check_length, check_not_empty, read_tools
from gateway.runs.rows import MAX_CALL_ID
from gateway.turns.events import TurnOptions
from memories.api.bodies import Body
from memories.errors import InvalidRequest
from memories.limits import PARTS, TOOL_RESULT, TOOLS, ShortText

_PART_TYPES = ("text", "image_url", "input_audio", "file")
_RESERVED = frozenset({"model", "messages", "tools", "stream", "stream_options"})
Render = Annotated[
    Literal["text", "html"],
    Field(description="How a stream sends the answer: as text in `delta` events, or as HTML in `html` events."),
]
# A longer text is answered with 413, so this limit is only documentation.
MessageText = Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": settings.DAYBOOK_MAX_MESSAGE})]
MessageParts = Annotated[
    list[dict[str, Any]],
    Field(min_length=1, max_length=PARTS, description="OpenAI content parts: text, image_url, input_audio, file."),
]
_CallId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CALL_ID)]


class TurnOptionsIn(Body):
    """Options of the answer to a turn."""

    stream: Annotated[StrictBool | None, Field(description="null is false.")] = False
    tools: Annotated[
        list[dict[str, Any]],
        Field(max_length=TOOLS, description="Tools of the client, as in OpenAI's chat completions."),
    ] = []
    parameters: Annotated[
        dict[str, Any], Field(description="Parameters of the model: temperature, tool_choice, reasoning_effort, …")
    ] = {}

    def options(self) -> TurnOptions:
        """Return the options of the turn. Raises InvalidRequest."""
        if reserved := sorted(_RESERVED & self.parameters.keys()):
            raise InvalidRequest(
                f"`parameters` cannot contain {', '.join(reserved)}: these come from the agent and the session.",
                param="parameters",
            )
        return TurnOptions(stream=True, parameters=self.parameters, client_tools=read_tools(self.tools))


class TurnIn(TurnOptionsIn, json_schema_extra={"examples": [{"content": "What could I cook?", "stream": False}]}):
    """A person's message. With `replaces` and no content, the message of that turn is sent again."""

    content: MessageText | MessageParts | None = None
    replaces: ShortText | None = None
    keep_attached: Annotated[
        bool, Field(description="With `replaces` and a text: keep the attachments of that turn's message.")
    ] = False
    last_turn: Annotated[
        ShortText | None,
        Field(
            description="The last turn that the client shows; empty if it shows none. If another version was chosen "
            "meanwhile, the one that ends with this turn is shown again, and the message follows it. If the "
            "conversation went on, the message is refused with `conflict`. By default, a message follows whatever is "
            "shown."
        ),
    ] = None
    render: Render = "text"

    def checked_content(self) -> str | list[dict[str, Any]] | None:
        """Return the content, or None to send the same message again. Raises InvalidRequest, TooLarge."""
        if self.content is None and self.replaces:
            return None
        check_parts(self.content, "content")
        check_not_empty(self.content, "content")
        check_length(self.content, "content")
        return self.content


class ToolResult(Schema):
    """The result of one call of the client's tools. Other fields of a tool message are ignored."""

    tool_call_id: _CallId
    content: Annotated[str, Field(max_length=TOOL_RESULT)] | MessageParts


class ToolResultsIn(
    TurnOptionsIn,
    json_schema_extra={
        "examples": [{"results": [{"tool_call_id": "call_01a20650_0", "content": "21 °C"}], "stream": False}]
    },
):
    """Results of the calls that a turn waits for. Send the tools and parameters again: those of this request apply to
    the next model step."""

    results: Annotated[list[ToolResult], Field(min_length=1, max_length=TOOLS)]

    def messages(self) -> list[dict[str, Any]]:
        """Return the results as messages. Raises InvalidRequest."""
        if len({result.tool_call_id for result in self.results}) < len(self.results):
            raise InvalidRequest("A call has one result. Name each tool_call_id once.", param="results")
        for index, result in enumerate(self.results):
            check_parts(result.content, f"results[{index}].content")
        return [{"role": "tool", **result.model_dump()} for result in self.results]


def check_types(content: Any, where: str) -> None:
    """Raise InvalidRequest if a part has no type."""
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part.get("type"), str):
            raise InvalidRequest(f"{where}[{index}].type must be text, such as text or image_url.", param=where)


def check_parts(content: Any, where: str) -> None:
    """Raise InvalidRequest if a part has none of the types of MessageParts, or is a text part without a text."""
    check_types(content, where)
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if part["type"] not in _PART_TYPES:
            path = f"{where}[{index}].type"
            raise InvalidRequest(f"{path} must be {', '.join(_PART_TYPES[:-1])} or {_PART_TYPES[-1]}.", param=path)
        if part["type"] == "text" and not isinstance(part.get("text"), str):
            path = f"{where}[{index}].text"
            raise InvalidRequest(f"{path} must be text.", param=path)

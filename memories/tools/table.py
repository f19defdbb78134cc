"""The table of tools. A new tool is added here; turns, reviews, /mcp, pages and docs use the table."""

import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from memories.tools.documents import READ
from memories.tools.reading import GET_MEMORIES, SEARCH_MEMORIES
from memories.tools.tool import Stage, Tool
from memories.tools.writing import ADD_MEMORY, DELETE_MEMORY, UPDATE_MEMORY

# What models write around a tool's name: a namespace (`functions.`, `default_api:`); a number, or control tokens of
# their format.
_BEFORE_NAME = re.compile(r"\A(?:[\w-]{1,64}[.:/])+")
_AFTER_NAME = re.compile(r"(?:<\|.*|:\d{1,4})\Z", re.DOTALL)


_TABLE = (ADD_MEMORY, UPDATE_MEMORY, DELETE_MEMORY, SEARCH_MEMORIES, GET_MEMORIES, READ)
TOOLS: Mapping[str, Tool] = MappingProxyType({tool.name: tool for tool in _TABLE})


def tools_at(*stages: Stage) -> tuple[Tool, ...]:
    """Return the tools that are offered in any of these stages, in the order of the table."""
    return tuple(tool for tool in TOOLS.values() if tool.stages.intersection(stages))


def tools_of_turn(*, memory: bool) -> tuple[Tool, ...]:
    """Return the tools for a conversation; `memory`: whether its agent has the memory tools."""
    return tools_at(Stage.MEMORY, Stage.DOCUMENTS) if memory else tools_at(Stage.DOCUMENTS)


def definitions(tools: Iterable[Tool]) -> tuple[dict[str, Any], ...]:
    """Return the tools as OpenAI function definitions."""
    return tuple(tool.definition() for tool in tools)


def tool_meant(name: str, tools: Collection[str]) -> str:
    """Return the name of the tool that a model means: the name without what models write around it if that is one of
    `tools`, else the name itself."""
    if name in tools:
        return name
    bare = _AFTER_NAME.sub("", name).strip()
    bare = bare if bare in tools else _BEFORE_NAME.sub("", bare)
    return bare if bare in tools else name

"""Reads and writes the agents file, which contains agents and memory settings (`agents apply`, `agents export`)."""

import hashlib
import logging
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.db import transaction
from pydantic.alias_generators import to_camel

from gateway.agents.contradictions import agent_warnings, missing_shared_upstream
from gateway.agents.settings import AgentSettings, AgentsFile, ConsolidationSettings, ModelRoles
from gateway.models import Agent, Configuration
from gateway.services import agents_apply, settings_check, settings_lock
from memories.errors import InvalidRequest
from memories.storable import storable

logger = logging.getLogger("daybook.agents")
_APPLIED_FILE = "agents_file"
_MAX_BYTES = 10_000_000
_MAX_NODES = 500_000  # values of a file, each alias counted with all that it stands for
# What the YAML library raises: its own errors, and those of its constructors for a value that is nested too deeply, or
# looks like a date, a number or a boolean without being one.
_UNREADABLE = (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError)
_KEYS = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"}


class _Loader(yaml.SafeLoader):
    """A YAML loader that rejects duplicate keys in a mapping, of which YAML would silently use the last, keys that it
    reads as something else than text (`yes:`), and aliases of aliases that make a small file endless."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._nodes = 0
        self._sizes: dict[int, int] = {}  # nodes by the id() of the one that holds them

    def compose_node(self, parent: Any, index: Any) -> Any:
        before, alias = self._nodes, self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        self._nodes += self._sizes.get(id(node), 1) if alias else 1
        self._sizes.setdefault(id(node), self._nodes - before)
        if self._nodes > _MAX_NODES:
            problem = f"it holds more than {_MAX_NODES} values, aliases included"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=getattr(node, "start_mark", None))
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.tag not in _KEYS:
                problem = f"the key {key.value} must be in quotes: '{key.value}'"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value} stands here twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return node


def parse(text: str) -> AgentsFile:
    """Parse and validate the text of a file. Raises InvalidRequest, which names the key. Nothing is applied."""
    data = read_yaml(text)
    data = {} if data is None else data
    if not isinstance(data, dict):
        raise InvalidRequest(
            "The file is a mapping with `agents`, `memories`, `model_roles`, `prices` and `upstreams`. Nothing was "
            "applied."
        )
    return settings_check(data)


def read_yaml(text: str) -> Any:
    """Return what a file, or a section of it, contains, without characters that databases cannot store. Raises
    InvalidRequest for text that is not YAML."""
    try:
        return storable(yaml.load(text, _Loader))  # noqa: S506 - a SafeLoader
    except _UNREADABLE as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        where = f" in line {mark.line + 1}" if mark else ""
        why = f": {problem}" if problem else ""
        raise InvalidRequest(f"This is not valid YAML{where}{why}. Nothing was applied.") from None


def apply_file(path: Path) -> list[str]:
    """Apply a file and return the names of its agents. Raises InvalidRequest."""
    return _apply(_bytes(path))


def _apply(content: bytes) -> list[str]:
    try:
        file = parse(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The file is not UTF-8 text (at byte {error.start}). Nothing was applied.") from None
    names = agents_apply(file)
    for name, agent in file.agents.items():
        for sentence in agent_warnings(agent):
            logger.warning("agent %s: %s", name, sentence)
    for sentence in missing_shared_upstream():
        logger.warning("%s", sentence)
    return names


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}. Nothing was applied.") from None
    if len(content) > _MAX_BYTES:
        raise InvalidRequest(f"{path} is larger than {_MAX_BYTES} bytes. Nothing was applied.")
    return content


@transaction.atomic
def bootstrap_agents() -> list[str]:
    """Apply DAYBOOK_AGENTS if its content has changed since it was last applied; without that setting, apply the
    packaged file if there are no agents. Called by `up`. Return the names of the applied agents. Raises
    InvalidRequest."""
    settings_lock()
    if settings.DAYBOOK_AGENTS is None:
        return [] if Agent.objects.exists() else apply_file(settings.DAYBOOK_PACKAGED_AGENTS)
    path = Path(settings.DAYBOOK_AGENTS)
    try:
        content = _bytes(path)  # read once: the file may change meanwhile
        digest = hashlib.sha256(content).hexdigest()
        row = Configuration.objects.filter(section=_APPLIED_FILE).first()
        if row and row.value.get("sha256") == digest:
            return []
        names = _apply(content)
    except InvalidRequest as error:
        raise InvalidRequest(f"DAYBOOK_AGENTS is '{path}': {error}") from None
    Configuration.objects.update_or_create(section=_APPLIED_FILE, defaults={"value": {"sha256": digest}})
    return names


def export() -> str:
    """Return all agents and memory settings as the text of an agents file. Applying it changes nothing."""
    agents = {
        agent.name: AgentSettings.model_validate(agent.settings).model_dump(mode="json")
        for agent in Agent.objects.order_by("name")
    }
    return yaml.safe_dump({"agents": agents, **sections()}, sort_keys=False, allow_unicode=True)


def sections() -> dict[str, Any]:
    """Return the sections of an agents file that describes this installation, except the agents."""
    stored = {row.section: row.value for row in Configuration.objects.exclude(section=_APPLIED_FILE)}
    return {
        "memories": ConsolidationSettings.model_validate(stored.get("memories", {})).model_dump(mode="json"),
        "model_roles": ModelRoles.model_validate(stored.get("model_roles", {})).model_dump(mode="json"),
        "prices": stored.get("prices", {}),
        "upstreams": stored.get("upstreams", {}),
    }


def agents_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of the agents file. It contains both accepted names of each memory setting, such as
    `scan_limit` and `scanLimit`, and does not allow a file to use both."""
    schema = AgentsFile.model_json_schema(by_alias=False)
    memories = schema["$defs"][ConsolidationSettings.__name__]
    twice = {name: to_camel(name) for name in memories["properties"] if to_camel(name) != name}
    for name, camel in twice.items():
        memories["properties"][camel] = memories["properties"][name]
    memories["allOf"] = [{"not": {"required": [name, camel]}} for name, camel in twice.items()]
    return schema

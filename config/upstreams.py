"""Reads the upstreams from the environment."""

import os
from collections.abc import Callable
from typing import Any

from config.environment import UPSTREAM, ConfigurationError, Environment, checked_key, checked_url, refuse_quoted
from gateway.upstream_options import read_at_once, read_dialect, read_options


def upstreams(env: Environment) -> dict[str, dict[str, Any]]:
    """Return the upstreams `{name: {url, key, dialect?, options?, at_once?}}`. "default" is that of OPENAI_*. Without
    any upstream the demo model answers."""
    found: dict[str, dict[str, Any]] = {}
    key = env.openai_api_key.get_secret_value()
    if env.openai_base_url or key:
        found["default"] = {"url": env.openai_base_url or "https://api.openai.com/v1", "key": key}
    fields = {"dialect": env.openai_dialect, "options": env.openai_options, "at_once": env.openai_at_once}
    of_default = {field: _upstream_value(f"OPENAI_{field.upper()}", value) for field, value in fields.items() if value}
    if "default" in found:
        found["default"] |= of_default
    for variable, value in os.environ.items():
        if (match := UPSTREAM.match(variable)) and value:
            name, field = match[1].lower(), match[2].lower()
            found.setdefault(name, {"url": "", "key": ""})[field] = _upstream_value(variable, value)
    for name, upstream in found.items():
        if not upstream["url"]:
            prefix = f"DAYBOOK_UPSTREAM_{name.upper()}"
            given = "its key" if upstream["key"] else "its dialect" if "dialect" in upstream else "another setting"
            raise ConfigurationError(f"{prefix}_URL is not set, but {given} is; set both.")
    return found


def _upstream_value(variable: str, value: str) -> Any:
    """Return the checked value of an upstream's variable. Raises ConfigurationError."""
    reader = next((reader for suffix, reader in _UPSTREAM_READERS.items() if variable.upper().endswith(suffix)), str)
    try:
        refuse_quoted(value)
        return reader(value)
    except ValueError as error:
        given = repr(value) if reader in {read_dialect, read_at_once} else "a value that is not shown"
        raise ConfigurationError(f"{variable} is {given}; {error}.") from None


_UPSTREAM_READERS: dict[str, Callable[[str], Any]] = {
    "_URL": checked_url,
    "_KEY": checked_key,
    "_DIALECT": read_dialect,
    "_OPTIONS": read_options,
    "_AT_ONCE": read_at_once,
}

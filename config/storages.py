"""The storage of attachments: a folder in DAYBOOK_HOME, or the Django storage named in DAYBOOK_ATTACHMENTS."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.core.files.storage import Storage, storages

from config.environment import ConfigurationError, Environment, expanded

ALIAS = "attachments"
_FOLDER = "django.core.files.storage.FileSystemStorage"
_VARIABLE = "DAYBOOK_ATTACHMENTS"
_ALLOWED = 'allowed is {"BACKEND": "dotted.path.of.a.Storage", "OPTIONS": {…}}'


def attachments_storage(env: Environment, home: Path) -> dict[str, Any]:
    """Return Django's settings of the storage. Raises ConfigurationError, whose message does not contain the options,
    since they may be secret."""
    given = env.attachments.get_secret_value()
    if not given:
        return _local(home / ALIAS)
    try:
        config = json.loads(given)
    except ValueError:
        config = None
    if not isinstance(config, dict) or not config.keys() <= {"BACKEND", "OPTIONS"}:
        raise ConfigurationError(f"{_VARIABLE} is a value that is not shown; {_ALLOWED}.")
    backend, options = config.get("BACKEND"), config.get("OPTIONS", {})
    if not isinstance(backend, str) or "." not in backend or not isinstance(options, dict):
        raise ConfigurationError(f"{_VARIABLE} is a value that is not shown; {_ALLOWED}.")
    if not _is_installed(backend.rpartition(".")[0]):
        raise ConfigurationError(f"{_VARIABLE} is {backend!r}, whose module is not installed; {_ALLOWED}.")
    if backend == _FOLDER and isinstance(location := options.get("location"), str):
        try:
            options = {**options, "location": str(expanded(Path(location)))}
        except ValueError as error:
            raise ConfigurationError(f"{_VARIABLE} has a location that cannot be used; {error}.") from None
    return {"BACKEND": backend, "OPTIONS": options}


def require_storage() -> None:
    """Create the storage, after the apps are loaded. Raises ConfigurationError."""
    try:
        storage = storages[ALIAS]
    except Exception as error:  # each storage has its own exceptions, whose messages may contain its options
        raise ConfigurationError(
            f"{_VARIABLE} is a storage that cannot be created ({type(error).__name__}); {_ALLOWED}."
        ) from error
    if not isinstance(storage, Storage):
        name = type(storage).__name__
        raise ConfigurationError(f"{_VARIABLE} is {name!r}, which is not a Django Storage; {_ALLOWED}.")


def _local(folder: Path) -> dict[str, Any]:
    return {
        "BACKEND": _FOLDER,
        "OPTIONS": {
            "location": str(folder),
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
            "allow_overwrite": True,
        },
    }


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False

"""The version of this Daybook, for clients that ask what they speak to."""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_UNKNOWN = "0+unknown"


def package_version(folder: Path) -> str:
    """Return the version in the `pyproject.toml` of a checkout or an image; without that file the one of the installed
    package, or `0+unknown`."""
    file = folder / "pyproject.toml"
    if file.is_file():
        return str(tomllib.loads(file.read_text(encoding="utf-8"))["project"]["version"])
    try:
        return version("daybook")
    except PackageNotFoundError:
        return _UNKNOWN

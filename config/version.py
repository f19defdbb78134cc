"""The version of Daybook."""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_UNKNOWN = "0+unknown"


def package_version(folder: Path) -> str:
    """Return the version in `pyproject.toml` of a checkout or an image, or else that of the installed package, or
    `0+unknown`."""
    file = folder / "pyproject.toml"
    if file.is_file():
        return str(tomllib.loads(file.read_text(encoding="utf-8"))["project"]["version"])
    try:
        return version("daybook")
    except PackageNotFoundError:
        return _UNKNOWN

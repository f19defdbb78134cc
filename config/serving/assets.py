"""The static files of pages: joined (config.serving.joined_files), named by a hash of their content, and compressed.

The first web process of a version prepares them in STATIC_ROOT, which takes up to two seconds; other processes use them
from there. There is no build step and no network access. Templates use `{% static %}`, and browsers cache the files
forever."""

import fcntl
import functools
import hashlib
import time
from pathlib import Path
from typing import Any, cast

import brotli
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from servestatic.compress import Compressor
from servestatic.middleware import ServeStaticMiddleware
from servestatic.storage import CompressedManifestStaticFilesStorage

from config.serving import joined_files

# Files of packages that no page loads: source maps, another API viewer, other builds of htmx, and what Django's admin
# loads only with DEBUG.
_IGNORED = [
    "*.map",
    "redoc*",
    "htmax-*",
    "htmx-4*",
    "htmx-2.js",
    "ext",
    "LICENSE*",
    "README*",
    "OFL-*",
    "xregexp.js",
    "jquery.js",
]
_KEEP_SECONDS = 86_400
_BEST_QUALITY_BYTES = 400_000  # only the API viewer is larger, and would take seconds


def _without_maps(patterns: Any) -> Any:
    return tuple(
        (extension, tuple(pattern for pattern in group if "sourceMappingURL" not in str(pattern)))
        for extension, group in patterns
    )


class _Compressor(Compressor):  # type: ignore[misc]  # the package has no types
    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        return bytes(brotli.compress(data, quality=11 if len(data) <= _BEST_QUALITY_BYTES else 7))


class AssetStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # the package has no types
    """servestatic's storage with a manifest. It ignores references to source maps, which are not collected."""

    patterns = _without_maps(CompressedManifestStaticFilesStorage.patterns)
    keep_intermediate_files = False

    def create_compressor(self, **options: Any) -> Compressor:
        return _Compressor(**options)


class AssetMiddleware(ServeStaticMiddleware):  # type: ignore[misc]  # the package has no types
    """Serves the static files, which it prepares before the first request."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        prepare_assets()
        super().__init__(*args, **kwargs)


@functools.cache
def prepare_assets() -> None:
    """Bring STATIC_ROOT up to date with the static files of this version. Each process checks once, and only one does
    the work."""
    folder = Path(settings.STATIC_ROOT)
    state = _state()
    if _prepared(folder) != state:
        _prepare(folder, state)
    # Another process may have prepared them since the storage read its manifest here.
    storage = cast(AssetStorage, staticfiles_storage)
    storage.hashed_files, storage.manifest_hash = storage.load_manifest()


def _prepare(folder: Path, state: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _prepared(folder) != state:
            call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=_IGNORED)
            _remove_old(folder)
            (folder / ".prepared").write_text(state)


def _prepared(folder: Path) -> str:
    try:
        return (folder / ".prepared").read_text()
    except FileNotFoundError:
        return ""


def _state() -> str:
    """Return a hash of everything that the prepared files depend on, including this module and joined_files."""
    digest = hashlib.sha256()
    for module in (__file__, joined_files.__file__):
        digest.update(Path(module).read_bytes())
    for finder in finders.get_finders():
        for name, storage in finder.list(_IGNORED):
            digest.update(f"\0{name}\0".encode())
            digest.update(Path(storage.path(name)).read_bytes())
    return digest.hexdigest()


def _remove_old(folder: Path) -> None:
    """Remove files of earlier versions, except those of the last day, which a process of the old version may still
    serve."""
    storage = cast(AssetStorage, staticfiles_storage)
    current = {name for file in storage.hashed_files.values() for name in (file, f"{file}.gz", f"{file}.br")}
    before = time.time() - _KEEP_SECONDS
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and "/" in name and name not in current and path.stat().st_mtime < before:
            path.unlink()

"""Static files: named by their content, compressed, cached for ever, and prepared once per version."""

import gzip
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import brotli
import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from django.templatetags.static import static
from django.test import Client

from config.environment import ConfigurationError
from config.serving import assets

HASHED = re.compile(r"^/static/gateway/chat\.[0-9a-f]{12}\.js$")


def body(answer: Any) -> bytes:
    return b"".join(answer)


def prepare() -> None:
    """Prepare the files as a new process would."""
    assets.prepare_assets.cache_clear()
    assets.prepare_assets()


def test_a_static_file_is_named_by_its_content_and_cached_for_ever() -> None:
    address = static("gateway/chat.js")
    assert HASHED.match(address)
    answer = Client().get(address)
    assert "immutable" in answer.headers["Cache-Control"]
    assert "max-age=315360000" in answer.headers["Cache-Control"]
    assert b"class Conversation" in body(answer), "its imports are joined into it"
    assert Client().get("/static/gateway/chat.js").status_code == 404


@pytest.mark.parametrize(
    ("accepted", "encoding", "decompress"), [("gzip", "gzip", gzip.decompress), ("gzip, br", "br", brotli.decompress)]
)
def test_a_static_file_is_sent_compressed_to_clients_that_accept_it(
    accepted: str, encoding: str, decompress: Callable[[bytes], bytes]
) -> None:
    address = static("gateway/daybook.css")
    plain = Client().get(address)
    compressed = Client().get(address, headers={"accept-encoding": accepted})
    assert compressed.headers["Content-Encoding"] == encoding
    assert compressed.headers["Vary"] == "Accept-Encoding"
    text = body(plain)
    assert decompress(body(compressed)) == text
    assert int(compressed.headers["Content-Length"]) < len(text) / 3


def test_preloaded_fonts_are_those_in_the_style_sheet() -> None:
    address = static("gateway/fonts/text-400.woff2")
    assert address.rpartition("/")[2].encode() in body(Client().get(static("gateway/daybook.css")))


@pytest.fixture
def own_files(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """A separate folder of static files, prepared into `tmp_path / "prepared"`."""
    folder = tmp_path / "static"
    (folder / "app").mkdir(parents=True)
    (folder / "app" / "page.js").write_text('import { word } from "./word.js";\n\nsay(word);\n')
    (folder / "app" / "word.js").write_text('export const word = "tea";\n')
    settings.STATICFILES_FINDERS = ["config.serving.joined_files.JoinedFinder"]
    settings.STATICFILES_DIRS = [folder]
    settings.STATIC_ROOT = str(tmp_path / "prepared")
    yield folder
    assets.prepare_assets.cache_clear()


def test_files_are_prepared_once_and_again_after_a_change(own_files: Path, tmp_path: Path) -> None:
    prepare()
    first = staticfiles_storage.url("app/page.js")
    file = tmp_path / "prepared" / first.removeprefix("/static/")
    assert '"tea"' in file.read_text()
    assert oct(file.stat().st_mode)[-3:] == "600"
    manifest = tmp_path / "prepared" / "staticfiles.json"
    prepared_at = manifest.stat().st_mtime_ns
    prepare()
    assert manifest.stat().st_mtime_ns == prepared_at
    (own_files / "app" / "word.js").write_text('export const word = "cocoa";\n')
    prepare()
    second = staticfiles_storage.url("app/page.js")
    assert second != first, "a change to an imported file changes the name, too"
    assert '"cocoa"' in (tmp_path / "prepared" / second.removeprefix("/static/")).read_text()


def test_a_folder_that_cannot_be_made_is_refused_by_name(own_files: Path, tmp_path: Path, settings: Any) -> None:
    (tmp_path / "file").touch()
    settings.STATIC_ROOT = str(tmp_path / "file" / "static")
    with pytest.raises(ConfigurationError, match=r"^DAYBOOK_STATIC is '.*'; it must be a folder that can be written"):
        prepare()


def test_files_of_earlier_versions_are_deleted_after_a_day(own_files: Path, tmp_path: Path) -> None:
    prepare()
    first = tmp_path / "prepared" / staticfiles_storage.url("app/page.js").removeprefix("/static/")
    word = own_files / "app" / "word.js"
    word.write_text('export const word = "cocoa";\n')
    prepare()
    assert first.exists(), "a process of the earlier version may still serve it"
    second = tmp_path / "prepared" / staticfiles_storage.url("app/page.js").removeprefix("/static/")
    os.utime(first, (time.time() - 90_000,) * 2)
    os.utime(second, (time.time() - 90_000,) * 2)
    (own_files / "app" / "more.js").write_text("start();\n")
    prepare()
    assert not first.exists()
    assert second.exists(), "this version uses it, too"

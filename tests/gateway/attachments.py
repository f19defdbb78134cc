"""What is attached in tests, and the files that are stored of it."""

import base64
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.core.files.storage import FileSystemStorage, storages

from gateway.attachments import sweep
from gateway.attachments.inline import ScanPosition

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 8
LARGE = PNG + bytes(range(256)) * 20  # what is worth a file
TEXT = {"type": "text", "text": "What is this?"}


def picture(data: bytes = PNG, kind: str = "image/png") -> dict[str, Any]:
    """A content part that holds a picture."""
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{base64.b64encode(data).decode()}"}}


def paper(data: bytes = b"%PDF-1.7" + LARGE) -> dict[str, Any]:
    """A content part that holds a file with a name."""
    url = f"data:application/pdf;base64,{base64.b64encode(data).decode()}"
    return {"type": "file", "file": {"filename": "paper.pdf", "file_data": url}}


def sound(data: bytes = b"RIFF0000WAVE" + LARGE) -> dict[str, Any]:
    """A content part that holds a sound."""
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(data).decode(), "format": "wav"}}


def folder() -> Path:
    """Where the files of this test process are."""
    storage = storages["attachments"]
    assert isinstance(storage, FileSystemStorage)
    return Path(storage.location)


def files(owner_id: object = "") -> list[Path]:
    """The files that are stored, of one owner or of all."""
    return sorted(path for path in (folder() / str(owner_id)).rglob("*") if path.is_file())


def tidied(walk: ScanPosition | None = None) -> bool:
    """Sweep, and do the job that is queued. Returns whether there was one."""
    queued: list[tuple[str, ...]] = []
    with patch.object(sweep, "enqueue", lambda task, *given, timeout: queued.append(tuple(map(str, given)))):
        sweep.attachments_sweep(walk or ScanPosition())
    for given in queued:
        sweep.attachments_tidy(*given)
    return bool(queued)

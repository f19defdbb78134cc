"""Sample attachments, and the files stored for them."""

import base64
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.core.files.storage import FileSystemStorage, storages

from gateway.attachments import sweep
from gateway.attachments.sweep import ScanPosition

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 8
LARGE = PNG + bytes(range(256)) * 20  # large enough to be stored as a file
TEXT = {"type": "text", "text": "What is this?"}


def picture(data: bytes = PNG, kind: str = "image/png") -> dict[str, Any]:
    """Return a content part with a picture."""
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{base64.b64encode(data).decode()}"}}


def paper(data: bytes = b"%PDF-1.7" + LARGE) -> dict[str, Any]:
    """Return a content part with a named file."""
    url = f"data:application/pdf;base64,{base64.b64encode(data).decode()}"
    return {"type": "file", "file": {"filename": "paper.pdf", "file_data": url}}


def sound(data: bytes = b"RIFF0000WAVE" + LARGE) -> dict[str, Any]:
    """Return a content part with a sound."""
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(data).decode(), "format": "wav"}}


def storage_folder() -> Path:
    """Return the folder in which this test process stores files."""
    storage = storages["attachments"]
    assert isinstance(storage, FileSystemStorage)
    return Path(storage.location)


def stored_files(owner_id: object = "") -> list[Path]:
    """Return the stored files of one owner or of all owners."""
    return sorted(path for path in (storage_folder() / str(owner_id)).rglob("*") if path.is_file())


def sweep_run(position: ScanPosition | None = None) -> bool:
    """Run the sweep and the job it queues. Return True if it queued one."""
    queued: list[tuple[str, ...]] = []
    with patch.object(sweep, "enqueue", lambda task, *arguments, timeout: queued.append(tuple(map(str, arguments)))):
        sweep.attachments_sweep(position or ScanPosition())
    for arguments in queued:
        sweep.attachments_tidy(*arguments)
    return bool(queued)

"""The files of attachments: the only module that calls their storage. A file's name contains its owner and the hash of
its content, so a file is never changed and never shared between owners. Nothing here uses the database. A storage may
be slow, so it must not be called in a transaction."""

import hashlib
import logging
from contextlib import suppress
from enum import StrEnum
from pathlib import PurePosixPath
from uuid import UUID

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, storages

from memories.ids import uuid7

ALIAS = "attachments"
logger = logging.getLogger("daybook.attachments")


class ReadFailure(StrEnum):
    """Why bytes could not be read, as a text for people."""

    MISSING = "The file is no longer stored."
    UNAVAILABLE = "The file cannot be read at the moment."


def storage() -> Storage:
    return storages[ALIAS]


def is_local() -> bool:
    """Return True if the files are in a local folder."""
    return isinstance(storage(), FileSystemStorage)


def storage_try() -> str:
    """Write, read and delete a test file. Return an error message, or ""."""
    data = b"daybook"
    try:
        backend = storage()
        name = backend.save(f"tried/{uuid7()}", ContentFile(data))
        with backend.open(name) as file:
            stored = file.read()
        _delete(name)
    except Exception as error:  # noqa: BLE001 - each storage has its own errors
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return "" if stored == data else "the data that was read differs from what was written"


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of the bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def file_name(owner_id: UUID, sha256: str) -> str:
    return f"{owner_id}/{sha256[:2]}/{sha256}"


def file_store(owner_id: UUID, sha256: str, data: bytes) -> None:
    """Store bytes unless they are already stored. Raises the storage's errors."""
    name, backend = file_name(owner_id, sha256), storage()
    if backend.exists(name):
        if backend.size(name) == len(data):
            return
        backend.delete(name)  # writing it was interrupted
    try:
        saved = backend.save(name, ContentFile(data))
    except FileNotFoundError:  # its folder was empty, and was deleted at this moment
        saved = backend.save(name, ContentFile(data))
    if saved != name:  # another request stored it first, and this storage never overwrites
        backend.delete(saved)


def file_load(owner_id: UUID, sha256: str, size: int) -> bytes | ReadFailure:
    """Return the bytes of a file, or why they could not be read. Never raises."""
    try:
        with storage().open(file_name(owner_id, sha256)) as file:
            data: bytes = file.read()
    except FileNotFoundError:
        return ReadFailure.MISSING
    except Exception as error:  # noqa: BLE001 - each storage has its own, which must not fail a page or a turn
        _log("an attachment cannot be read", error)
        return ReadFailure.UNAVAILABLE
    return data if len(data) == size else ReadFailure.MISSING


def file_is_gone(owner_id: UUID, sha256: str) -> bool:
    """Return True if the storage reports that a file does not exist. Never raises."""
    try:
        return not storage().exists(file_name(owner_id, sha256))
    except Exception as error:  # noqa: BLE001 - as above
        _log("the storage of attachments does not answer", error)
        return False


def _log(text: str, error: Exception) -> None:
    """Log an error of the storage, without a traceback if the operating system gives the reason."""
    reason = error.strerror if isinstance(error, OSError) else None
    logger.error("%s (%s)", text, reason or type(error).__name__, exc_info=not reason)


def file_delete(owner_id: UUID, sha256: str) -> None:
    """Delete a file; a missing file counts as deleted. Raises the storage's errors."""
    _delete(file_name(owner_id, sha256))


def _delete(name: str) -> None:
    """Delete a file and, on this machine, the folders that are empty without it."""
    storage().delete(name)
    folders = list(PurePosixPath(name).parents)[:-1] if is_local() else []
    with suppress(OSError):  # one is not empty
        for folder in folders:
            storage().delete(str(folder))

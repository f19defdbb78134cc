"""The files of attachments: the only module that calls their storage. A file's name contains its owner and the hash of
its content, so a file is never changed, and never shared by two owners. Nothing here uses the database. A storage may
be slow, so it is not called in a transaction."""

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


class Unread(StrEnum):
    """The reason why bytes could not be read, in words for people."""

    GONE = "The file is no longer stored."
    AWAY = "The file cannot be read at the moment."


def storage() -> Storage:
    return storages[ALIAS]


def is_local() -> bool:
    """Return True if the files are in a folder of this machine."""
    return isinstance(storage(), FileSystemStorage)


def storage_try() -> str:
    """Write, read and delete a test file. Returns what is wrong; "" if nothing is."""
    data = b"daybook"
    try:
        there = storage()
        name = there.save(f"tried/{uuid7()}", ContentFile(data))
        with there.open(name) as file:
            found = file.read()
        _delete(name)
    except Exception as error:  # noqa: BLE001 - each storage has its own errors
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return "" if found == data else "what is read is not what was written"


def sha256_of(data: bytes) -> str:
    """Return the hash that identifies bytes."""
    return hashlib.sha256(data).hexdigest()


def file_name(owner_id: UUID, sha256: str) -> str:
    return f"{owner_id}/{sha256[:2]}/{sha256}"


def file_store(owner_id: UUID, sha256: str, data: bytes) -> None:
    """Store bytes, unless they are stored already. Raises what the storage raises."""
    name, there = file_name(owner_id, sha256), storage()
    if there.exists(name):
        if there.size(name) == len(data):
            return
        there.delete(name)  # writing it was interrupted
    try:
        saved = there.save(name, ContentFile(data))
    except FileNotFoundError:  # its folder was empty, and was deleted at this moment
        saved = there.save(name, ContentFile(data))
    if saved != name:  # another request stored it first, and this storage never overwrites
        there.delete(saved)


def file_load(owner_id: UUID, sha256: str, size: int) -> bytes | Unread:
    """Return the bytes of a file, or the reason why they cannot be read. Never raises."""
    try:
        with storage().open(file_name(owner_id, sha256)) as file:
            data: bytes = file.read()
    except FileNotFoundError:
        return Unread.GONE
    except Exception:  # each storage has its own errors, which must not fail a page or a turn
        logger.exception("an attachment cannot be read")
        return Unread.AWAY
    return data if len(data) == size else Unread.GONE


def file_is_gone(owner_id: UUID, sha256: str) -> bool:
    """Return True if a file is known not to exist any more. Never raises."""
    try:
        return not storage().exists(file_name(owner_id, sha256))
    except Exception:  # as above
        logger.exception("the storage of attachments does not answer")
        return False


def file_delete(owner_id: UUID, sha256: str) -> None:
    """Delete a file; a missing file counts as deleted. Raises what the storage raises."""
    _delete(file_name(owner_id, sha256))


def _delete(name: str) -> None:
    """Delete a file and, on this machine, the folders that are empty without it."""
    storage().delete(name)
    folders = list(PurePosixPath(name).parents)[:-1] if is_local() else []
    with suppress(OSError):  # one is not empty
        for folder in folders:
            storage().delete(str(folder))

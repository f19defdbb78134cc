"""The files of an upload: the one that was given, or those of a zip archive whose names are known. An archive is
bounded before it is opened, and nothing of it is unpacked to disk."""

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO

from memories.database.batches import Slices
from memories.errors import DomainError, InvalidRequest, TooLarge
from memories.limits import IMPORT_BYTES, IMPORT_DIRECTORY_BYTES, IMPORT_FILE_BYTES, IMPORT_FILES, IMPORT_RATIO

READ_FIRST = ("projects", "memories", "memory", "conversations")
"""Names of the JSON files of an archive that are read, in this order: what names a thing comes before what uses it.
Parts (`conversations-001.json`) and folders (`projects/….json`) count."""
_PIECE = 1_000_000
_SMALL = 1_000_000  # a file that is so small when it is unpacked may be packed as tightly as it likes
_BROKEN = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError, struct.error,
)  # fmt: skip
_END = struct.Struct("<4s4H2LH")  # the end of an archive's list of files
_END_64 = b"PK\x06\x07"


@dataclass(frozen=True, slots=True)
class Upload:
    """What somebody brings: a file that can be read from any place, and its name if it is known."""

    file: BinaryIO
    name: str = ""

    @classmethod
    def of(cls, data: bytes, name: str = "") -> "Upload":
        return cls(io.BytesIO(data), name)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file as text. `name` is empty where only one was given."""

    name: str
    text: str

    def place(self, words: str) -> str:
        """Return the name of a place in the file, such as `memories.json, memory 3`."""
        return f"{self.name}, {words}" if self.name else words[:1].upper() + words[1:]


class Files:
    """The files of an upload, read one after the other."""

    def __init__(self, upload: Upload) -> None:
        """Raises InvalidRequest for an archive that cannot be read or holds no known file, TooLarge."""
        self._upload = upload
        self._left = IMPORT_BYTES
        self._archive: zipfile.ZipFile | None = None
        self.names: list[str] = [""]
        if _is_zip(upload.file):
            self._archive, self.names = _open(upload.file)

    def read(self, name: str) -> Slices[SourceFile]:
        """Return a file, read in slices. Raises InvalidRequest, TooLarge."""
        data = (yield from self._unpacked(name)) if self._archive else self._whole()
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidRequest(
                f"{name or 'The file'} is not UTF-8 text. Save it as UTF-8, or bring the export as it came. "
                "Nothing was imported."
            ) from None
        return SourceFile(name, text)

    def _whole(self) -> bytes:
        data = self._upload.file.read(IMPORT_FILE_BYTES + 1)
        if len(data) > IMPORT_FILE_BYTES:
            raise _too_large("The file")
        return data

    def _unpacked(self, name: str) -> Slices[bytes]:
        assert self._archive is not None
        info = self._archive.getinfo(name)
        most = min(IMPORT_FILE_BYTES, self._left)
        if info.file_size > most:
            raise _too_large(name)
        if info.file_size > _SMALL and info.file_size > IMPORT_RATIO * info.compress_size:
            raise InvalidRequest(
                f"{name} is packed more than {IMPORT_RATIO} times smaller than it is. Unpack the archive and bring the "
                "file itself. Nothing was imported."
            )
        pieces: list[bytes] = []
        size = 0
        try:
            with self._archive.open(info) as packed:
                while piece := packed.read(_PIECE):
                    size += len(piece)
                    if size > most:
                        raise _too_large(name)
                    pieces.append(piece)
                    yield
        except _BROKEN:
            raise InvalidRequest(
                f"{name} cannot be unpacked: it is damaged or encrypted. Download the export again, or unpack it and "
                "bring the file itself. Nothing was imported."
            ) from None
        self._left -= size
        return b"".join(pieces)


def _is_zip(file: BinaryIO) -> bool:
    file.seek(0)
    head = file.read(4)
    file.seek(0)
    return head in {b"PK\x03\x04", b"PK\x05\x06"}


def _open(file: BinaryIO) -> tuple[zipfile.ZipFile, list[str]]:
    try:
        _check_directory(file)
        archive = zipfile.ZipFile(file)
        names = [name for name in archive.namelist() if _rank(name) is not None]
    except _BROKEN:
        raise InvalidRequest(
            "The archive cannot be read: it is damaged or cut off. Download the export again. Nothing was imported."
        ) from None
    if not names:
        raise InvalidRequest(
            "The archive has no file that is known: conversations.json, memories.json or projects.json. If the export "
            "has another form, unpack it and bring one file. Nothing was imported."
        )
    if len(names) > IMPORT_FILES:
        raise TooLarge(f"The archive has more than {IMPORT_FILES} files to read. Split it.", limit=IMPORT_FILES)
    return archive, sorted(set(names), key=lambda name: (_rank(name), name))


def _check_directory(file: BinaryIO) -> None:
    """Raises TooLarge for an archive whose list of files is long, before it is read as a whole."""
    length = file.seek(0, io.SEEK_END)
    start = max(0, length - _END.size - 65_535 - 20)
    file.seek(start)
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + _END.size > len(tail):
        raise zipfile.BadZipFile
    size = _END.unpack_from(tail, at)[5]
    if size > IMPORT_DIRECTORY_BYTES or tail[max(0, at - 20) : at].startswith(_END_64):
        raise TooLarge(
            "The archive has too many files. Unpack it, and bring conversations.json and memories.json one by one. "
            "Nothing was imported.",
            limit=IMPORT_DIRECTORY_BYTES,
        )


def _rank(name: str) -> int | None:
    """Return where a file of an archive comes in the order of reading; None for one that is not read."""
    path = PurePosixPath(name)
    if path.suffix != ".json" or path.name.startswith(".") or "__MACOSX" in path.parts:
        return None
    for rank, known in enumerate(READ_FIRST):
        numbered = path.stem.startswith(known) and not path.stem.removeprefix(known).strip("-_0123456789")
        if numbered or path.parent.name == known:
            return rank
    return None


def _too_large(name: str) -> DomainError:
    return TooLarge(
        f"{name} has more than {IMPORT_FILE_BYTES // 1_000_000} MB, or all files together more than "
        f"{IMPORT_BYTES // 1_000_000} MB. Split it. Nothing was imported.",
        limit=IMPORT_FILE_BYTES,
    )

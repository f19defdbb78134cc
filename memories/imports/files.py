"""The files of an upload: the uploaded file itself, or the known files of a zip archive. Sizes are checked before an
archive is opened, and nothing is extracted to disk."""

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO

from memories.bidi import isolated
from memories.database.batches import Slices
from memories.errors import DomainError, InvalidRequest, TooLarge
from memories.limits import IMPORT_BYTES, IMPORT_DIRECTORY_BYTES, IMPORT_FILE_BYTES, IMPORT_FILES, IMPORT_RATIO

ARCHIVE_NAMES = ("projects", "memories", "memory", "conversations")
"""JSON files that are read from an archive, in this order, so that definitions precede their uses. Numbered parts
(`conversations-001.json`) and folders (`projects/….json`) count too."""
_CHUNK_BYTES = 1_000_000
# The output of bzip2 and LZMA cannot be limited: one read of a kilobyte may unpack to a gigabyte.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SMALL_BYTES = 1_000_000  # uncompressed size up to which any compression ratio is accepted
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError, struct.error,
)  # fmt: skip
_END_RECORD = struct.Struct("<4s4H2LH")  # end of central directory
_ZIP64_LOCATOR = b"PK\x06\x07"


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded seekable file, with its name if it is known."""

    file: BinaryIO
    name: str = ""

    @classmethod
    def of(cls, data: bytes, name: str = "") -> "Upload":
        return cls(io.BytesIO(data), name)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as text. `name` is empty unless it comes from an archive."""

    name: str
    text: str

    def place(self, words: str) -> str:
        """Return a position in the file for people, such as `memories.json, memories 3`."""
        return f"{isolated(self.name)}, {words}" if self.name else words[:1].upper() + words[1:]


class Files:
    """The files of an upload, read one at a time."""

    def __init__(self, upload: Upload) -> None:
        """Raise InvalidRequest if an archive is unreadable or has no known file, TooLarge if it has too many."""
        self._upload = upload
        self._remaining_bytes = IMPORT_BYTES
        self._archive: zipfile.ZipFile | None = None
        self.names: list[str] = [""]
        if _is_zip(upload.file):
            self._archive, self.names = _open_archive(upload.file)

    def read(self, name: str) -> Slices[SourceFile]:
        """Read a file in slices. Raises InvalidRequest, TooLarge."""
        if self._archive:
            data = yield from self._extract(self._archive, name)
        elif len(data := self._upload.file.read(IMPORT_FILE_BYTES + 1)) > IMPORT_FILE_BYTES:
            raise _too_large("The file")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidRequest(
                f"{name or 'The file'} is not UTF-8 text. Save it as UTF-8, or import the export unchanged. "
                "Nothing was imported."
            ) from None
        return SourceFile(name, text)

    def _extract(self, archive: zipfile.ZipFile, name: str) -> Slices[bytes]:
        info = archive.getinfo(name)
        limit = min(IMPORT_FILE_BYTES, self._remaining_bytes)
        if info.file_size > limit:
            raise _too_large(name)
        if info.compress_type not in _METHODS:
            raise InvalidRequest(
                f"{isolated(name)} is packed with another method than Deflate. Unpack the archive and import the file "
                "itself. Nothing was imported."
            )
        if info.file_size > _SMALL_BYTES and info.file_size > IMPORT_RATIO * info.compress_size:
            raise InvalidRequest(
                f"{isolated(name)} is compressed by a factor of more than {IMPORT_RATIO}. Unpack the archive and "
                "import the file itself. Nothing was imported."
            )
        chunks: list[bytes] = []
        size = 0
        try:
            with archive.open(info) as packed:
                while chunk := packed.read(_CHUNK_BYTES):
                    size += len(chunk)
                    if size > limit:
                        raise _too_large(name)
                    chunks.append(chunk)
                    yield
        except _UNREADABLE:
            raise InvalidRequest(
                f"{isolated(name)} cannot be unpacked: it is damaged or encrypted. Download the export again, or "
                "unpack it and import the file itself. Nothing was imported."
            ) from None
        self._remaining_bytes -= size
        return b"".join(chunks)


def _is_zip(file: BinaryIO) -> bool:
    file.seek(0)
    head = file.read(4)
    file.seek(0)
    return head in {b"PK\x03\x04", b"PK\x05\x06"}


def _open_archive(file: BinaryIO) -> tuple[zipfile.ZipFile, list[str]]:
    try:
        _check_directory(file)
        archive = zipfile.ZipFile(file)
        names = [name for name in archive.namelist() if _rank(name) is not None]
    except _UNREADABLE:
        raise InvalidRequest(
            "The archive cannot be read: it is damaged or cut off. Download the export again. Nothing was imported."
        ) from None
    if not names:
        raise InvalidRequest(
            "The archive has no known file (conversations.json, memories.json or projects.json). If the export "
            "has another format, unpack it and import one file. Nothing was imported."
        )
    if len(names) > IMPORT_FILES:
        raise TooLarge(f"The archive has more than {IMPORT_FILES} files to read. Split it.", limit=IMPORT_FILES)
    return archive, sorted(set(names), key=lambda name: (_rank(name), name))


def _check_directory(file: BinaryIO) -> None:
    """Raise TooLarge if the archive's central directory is too large, before it is read."""
    length = file.seek(0, io.SEEK_END)
    start = max(0, length - _END_RECORD.size - 65_535 - 20)
    file.seek(start)
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + _END_RECORD.size > len(tail):
        raise zipfile.BadZipFile
    size = _END_RECORD.unpack_from(tail, at)[5]
    if size > IMPORT_DIRECTORY_BYTES or tail[max(0, at - 20) : at].startswith(_ZIP64_LOCATOR):
        raise TooLarge(
            "The archive has too many files. Unpack it, and import conversations.json and memories.json one by one. "
            "Nothing was imported.",
            limit=IMPORT_DIRECTORY_BYTES,
        )


def _rank(name: str) -> int | None:
    """Return the position of an archive's file in the reading order, or None if it is not read."""
    path = PurePosixPath(name)
    if path.suffix != ".json" or path.name.startswith(".") or "__MACOSX" in path.parts:
        return None
    for rank, known in enumerate(ARCHIVE_NAMES):
        numbered = path.stem.startswith(known) and not path.stem.removeprefix(known).strip("-_0123456789")
        if numbered or path.parent.name == known:
            return rank
    return None


def _too_large(name: str) -> DomainError:
    return TooLarge(
        f"{isolated(name)} has more than {IMPORT_FILE_BYTES // 1_000_000} MB, or all files together more than "
        f"{IMPORT_BYTES // 1_000_000} MB. Split it. Nothing was imported.",
        limit=IMPORT_FILE_BYTES,
    )

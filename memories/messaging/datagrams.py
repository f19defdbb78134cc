"""A channel layer for one machine without Redis: every group message is sent as a datagram to each listening process.
Messages are only hints and may be lost (a full buffer, a terminated process); the database is authoritative."""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import secrets
import socket
import stat
import tempfile
from pathlib import Path
from typing import Any

from channels.layers import InMemoryChannelLayer

logger = logging.getLogger("daybook.push")
_MAX_BYTES = 60_000
# A socket's path may have 103 bytes on macOS, 107 on Linux; the rest is for the file name.
_MAX_FOLDER_BYTES = 76


class DatagramChannelLayer(InMemoryChannelLayer):
    """Groups across the processes of one machine. The sockets are in `folder` or, if its path is too long for a socket,
    in a folder named by its hash under the system's temporary folder. A folder is used only if it is private."""

    def __init__(self, folder: str | Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._folder = Path(folder)
        if len(os.fsencode(self._folder)) > _MAX_FOLDER_BYTES:
            digest = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
            self._folder = Path(tempfile.gettempdir()) / f"daybook-{os.getuid()}-{digest}"
        self._warned = False
        self._listening: tuple[asyncio.AbstractEventLoop, socket.socket, Path] | None = None

    async def group_add(self, group: str, channel: str) -> None:
        self._listen()
        await super().group_add(group, channel)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        self.hint(group, message)

    def hint(self, group: str, message: dict[str, Any]) -> None:
        """Send to every listening process, including this one. Never blocks; may be called by any thread."""
        data = json.dumps({"group": group, "message": message}).encode()
        if len(data) > _MAX_BYTES or not self._is_private():
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            for path in self._folder.glob("*.sock"):
                try:
                    sender.sendto(data, str(path))
                except (ConnectionRefusedError, FileNotFoundError):
                    path.unlink(missing_ok=True)  # its process has ended
                except OSError:
                    continue  # a full buffer: the reader finds the row when it polls the table

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        if self._listening and self._listening[0] is loop:
            return
        self._stop_listening()
        with contextlib.suppress(FileExistsError):
            self._folder.mkdir(mode=0o700, parents=True)
        if not self._is_private():
            if not self._warned:
                self._warned = True
                logger.warning(
                    "%s is not a folder of this user alone (mode 0700): hints between processes are off, and pages "
                    "only notice changes when they poll.",
                    self._folder,
                )
            return
        path = self._folder / f"{os.getpid()}-{secrets.token_hex(4)}.sock"
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.setblocking(False)
        receiver.bind(str(path))
        loop.add_reader(receiver.fileno(), self._read, receiver)
        self._listening = (loop, receiver, path)

    def _is_private(self) -> bool:
        """Return True if the folder belongs to this user and nobody else has access: otherwise another user who created
        it in the temporary folder could read and send hints."""
        try:
            found = self._folder.lstat()
        except FileNotFoundError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077

    def _stop_listening(self) -> None:
        if not self._listening:
            return
        loop, receiver, path = self._listening
        if not loop.is_closed():
            loop.remove_reader(receiver.fileno())
        receiver.close()
        path.unlink(missing_ok=True)
        self._listening = None

    def _read(self, receiver: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = json.loads(receiver.recv(_MAX_BYTES))
                asyncio.get_running_loop().create_task(super().group_send(packet["group"], packet["message"]))

    async def flush(self) -> None:
        self._stop_listening()
        await super().flush()

    async def close(self) -> None:
        self._stop_listening()

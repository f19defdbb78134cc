"""A channel layer for one machine without Redis: every group message is a datagram to each listening process.
Messages are hints and may be lost (a full buffer, a process that just went); the rows they point to are the truth."""

import asyncio
import contextlib
import hashlib
import json
import os
import secrets
import socket
import tempfile
from pathlib import Path
from typing import Any

from channels.layers import InMemoryChannelLayer

_LARGEST = 60_000


class DatagramChannelLayer(InMemoryChannelLayer):
    """Groups across the processes of one machine. `folder` only names the place: a socket's path may hold 100 bytes,
    a home may be longer, so the sockets lie in the temporary folder under a hash of it."""

    def __init__(self, folder: str | Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        digest = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
        self._folder = Path(tempfile.gettempdir()) / f"daybook-{os.getuid()}-{digest}"
        self._listening: tuple[asyncio.AbstractEventLoop, socket.socket, Path] | None = None

    async def group_add(self, group: str, channel: str) -> None:
        self._listen()
        await super().group_add(group, channel)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        self.hint(group, message)

    def hint(self, group: str, message: dict[str, Any]) -> None:
        """Send to every listening process, this one too. Never blocks; synchronous, so any thread may call it."""
        data = json.dumps({"group": group, "message": message}).encode()
        if len(data) > _LARGEST or not self._folder.is_dir():
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            for path in self._folder.glob("*.sock"):
                try:
                    sender.sendto(data, str(path))
                except (ConnectionRefusedError, FileNotFoundError):
                    path.unlink(missing_ok=True)  # its process is gone
                except OSError:
                    continue  # a full buffer: the reader's own look at the table will find the row

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        if self._listening and self._listening[0] is loop:
            return
        self._stop_listening()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / f"{os.getpid()}-{secrets.token_hex(4)}.sock"
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.setblocking(False)
        receiver.bind(str(path))
        loop.add_reader(receiver.fileno(), self._read, receiver)
        self._listening = (loop, receiver, path)

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
                packet = json.loads(receiver.recv(_LARGEST))
                asyncio.get_running_loop().create_task(super().group_send(packet["group"], packet["message"]))

    async def flush(self) -> None:
        self._stop_listening()
        await super().flush()

    async def close(self) -> None:
        self._stop_listening()

"""The socket folder of the channel layer: in the home folder, or a temporary folder that only this user can access."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from memories.messaging.datagrams import DatagramChannelLayer
from tests.waiting import eventually_async


@pytest_asyncio.fixture
async def layers() -> AsyncIterator[list[DatagramChannelLayer]]:
    made: list[DatagramChannelLayer] = []
    yield made
    for layer in made:
        await layer.close()


@pytest.fixture
def socket_folder(tmp_path: Path) -> Path:
    """A folder whose path is short enough for a socket."""
    return Path(tempfile.mkdtemp(prefix="dbk-")) / "sockets"


def mode_of(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def names_in(folder: Path) -> list[str] | None:
    return [path.name for path in folder.iterdir()] if folder.exists() else None


async def hint_arrives(layer: DatagramChannelLayer, sender: DatagramChannelLayer) -> bool:
    channel = await layer.new_channel()
    await layer.group_add("owner.1", channel)
    sender.hint("owner.1", {"type": "outbox.hint"})
    try:
        async with asyncio.timeout(0.5):
            return (await layer.receive(channel)) == {"type": "outbox.hint"}
    except TimeoutError:
        return False


async def test_hints_are_sent_through_a_private_folder(socket_folder: Path, layers: list[DatagramChannelLayer]) -> None:
    layers += [DatagramChannelLayer(socket_folder), DatagramChannelLayer(socket_folder)]
    await eventually_async(lambda: hint_arrives(layers[0], layers[1]), within=20)
    assert mode_of(socket_folder) == 0o700


async def test_a_home_with_a_long_path_has_its_sockets_in_a_temporary_folder(
    socket_folder: Path, layers: list[DatagramChannelLayer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(socket_folder.parent))
    home = socket_folder.parent / ("deep" * 30)
    layers += [DatagramChannelLayer(home), DatagramChannelLayer(home)]
    await eventually_async(lambda: hint_arrives(layers[0], layers[1]), within=20)
    assert names_in(home) is None


@pytest.fixture(params=[0o777, 0o755, 0o770])
def open_to_others(socket_folder: Path, request: pytest.FixtureRequest) -> Path:
    """The folder, created beforehand with a mode that lets others access it."""
    socket_folder.mkdir()
    socket_folder.chmod(request.param)
    return socket_folder


async def test_a_folder_that_others_can_access_is_not_used(
    open_to_others: Path, layers: list[DatagramChannelLayer]
) -> None:
    layers += [DatagramChannelLayer(open_to_others), DatagramChannelLayer(open_to_others)]
    assert not await hint_arrives(layers[0], layers[1])
    assert names_in(open_to_others) == []


@pytest.fixture
def link(socket_folder: Path) -> Path:
    """A symbolic link in place of the folder."""
    elsewhere = socket_folder.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    socket_folder.symlink_to(elsewhere)
    return socket_folder


async def test_a_link_is_not_followed(link: Path, layers: list[DatagramChannelLayer]) -> None:
    layers += [DatagramChannelLayer(link), DatagramChannelLayer(link)]
    assert not await hint_arrives(layers[0], layers[1])
    assert names_in(link) == []

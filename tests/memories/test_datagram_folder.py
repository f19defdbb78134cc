"""The folder of the sockets that carry hints: in the home, or in a temporary folder that nobody else could have made."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from memories.datagrams import DatagramChannelLayer
from tests.waiting import eventually_async


@pytest_asyncio.fixture
async def layers() -> AsyncIterator[list[DatagramChannelLayer]]:
    made: list[DatagramChannelLayer] = []
    yield made
    for layer in made:
        await layer.close()


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """A folder whose path is short enough for a socket."""
    return Path(tempfile.mkdtemp(prefix="dbk-")) / "sockets"


async def heard(layer: DatagramChannelLayer, sender: DatagramChannelLayer) -> bool:
    channel = await layer.new_channel()
    await layer.group_add("owner.1", channel)
    sender.hint("owner.1", {"type": "outbox.hint"})
    try:
        async with asyncio.timeout(0.5):
            return (await layer.receive(channel)) == {"type": "outbox.hint"}
    except TimeoutError:
        return False


async def test_hints_go_by_a_folder_of_ones_own(short: Path, layers: list[DatagramChannelLayer]) -> None:
    layers += [DatagramChannelLayer(short), DatagramChannelLayer(short)]
    await eventually_async(lambda: heard(layers[0], layers[1]), within=20)
    assert short.stat().st_mode & 0o777 == 0o700


async def test_a_long_home_has_its_sockets_in_the_temporary_folder(
    short: Path, layers: list[DatagramChannelLayer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(short.parent))
    home = short.parent / ("deep" * 30)
    layers += [DatagramChannelLayer(home), DatagramChannelLayer(home)]
    await eventually_async(lambda: heard(layers[0], layers[1]), within=20)
    assert not home.exists()


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o770])
async def test_a_folder_that_others_can_use_is_not_used(
    short: Path, layers: list[DatagramChannelLayer], mode: int
) -> None:
    short.mkdir()
    short.chmod(mode)
    layers += [DatagramChannelLayer(short), DatagramChannelLayer(short)]
    assert not await heard(layers[0], layers[1])
    assert not list(short.iterdir())


async def test_a_link_is_not_followed(short: Path, layers: list[DatagramChannelLayer]) -> None:
    elsewhere = short.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    os.symlink(elsewhere, short)
    layers += [DatagramChannelLayer(short), DatagramChannelLayer(short)]
    assert not await heard(layers[0], layers[1])
    assert not list(elsewhere.iterdir())

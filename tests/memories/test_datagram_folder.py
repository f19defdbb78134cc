"""The folder of the sockets that carry hints: in the home, or a temporary one that nobody else could have made."""

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
def short(tmp_path: Path) -> Path:
    """A folder whose path is short enough for a socket."""
    return Path(tempfile.mkdtemp(prefix="dbk-")) / "sockets"


def mode_of(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def names_in(folder: Path) -> list[str] | None:
    return [path.name for path in folder.iterdir()] if folder.exists() else None


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
    assert mode_of(short) == 0o700


async def test_a_long_home_has_its_sockets_in_the_temporary_folder(
    short: Path, layers: list[DatagramChannelLayer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(short.parent))
    home = short.parent / ("deep" * 30)
    layers += [DatagramChannelLayer(home), DatagramChannelLayer(home)]
    await eventually_async(lambda: heard(layers[0], layers[1]), within=20)
    assert names_in(home) is None


@pytest.fixture(params=[0o777, 0o755, 0o770])
def open_to_others(short: Path, request: pytest.FixtureRequest) -> Path:
    """The folder, made before us with a mode that lets others in."""
    short.mkdir()
    short.chmod(request.param)
    return short


async def test_a_folder_that_others_can_use_is_not_used(
    open_to_others: Path, layers: list[DatagramChannelLayer]
) -> None:
    layers += [DatagramChannelLayer(open_to_others), DatagramChannelLayer(open_to_others)]
    assert not await heard(layers[0], layers[1])
    assert names_in(open_to_others) == []


@pytest.fixture
def link(short: Path) -> Path:
    """A link to a folder, where ours should be."""
    elsewhere = short.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    short.symlink_to(elsewhere)
    return short


async def test_a_link_is_not_followed(link: Path, layers: list[DatagramChannelLayer]) -> None:
    layers += [DatagramChannelLayer(link), DatagramChannelLayer(link)]
    assert not await heard(layers[0], layers[1])
    assert names_in(link) == []

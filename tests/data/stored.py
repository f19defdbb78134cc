"""Reads a stored database into a home."""

import lzma
import sqlite3
from contextlib import closing
from pathlib import Path


def load_stored(script: Path, home: Path) -> None:
    """Make the home, with the database that a compressed SQL script holds."""
    home.mkdir(mode=0o700, parents=True)
    with closing(sqlite3.connect(home / "daybook.sqlite3")) as database:
        database.executescript(lzma.decompress(script.read_bytes()).decode())

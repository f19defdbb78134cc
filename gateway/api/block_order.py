"""The order in which an answer's blocks (texts, thinking, calls of tools) are told in events: one after the other, also
where a model writes several calls at once. Clients put them together by what came last."""

import json
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

P = TypeVar("P")


class BlockOrder(Generic[P]):
    """Puts pieces of blocks into an order in which each block is whole before the next one begins. A call is whole when
    its arguments are JSON, or at the end; what belongs to other blocks waits until then."""

    def __init__(self) -> None:
        self._open: Hashable | None = None
        self._arguments: list[str] | None = None  # of the open call
        self._looked_at = -1  # how many of these were no complete JSON
        self._closed: set[Hashable] = set()  # calls that are whole
        self._held: list[tuple[Hashable, P, str | None]] = []

    def add(self, block: Hashable, piece: P, arguments: str | None = None) -> Iterator[P]:
        """Take in a piece of a block, for a call with what it adds to its arguments; yields what may be told now. What
        comes of a call after its end is left out."""
        if block in self._closed:
            return
        if block == self._open:
            yield self._next(block, piece, arguments)
            return
        self._held.append((block, piece, arguments))
        while self._held and self._may_close():
            yield from self._release()

    @property
    def waits(self) -> bool:
        """Return True if something waits for the end of a call."""
        return bool(self._held)

    def end(self) -> Iterator[P]:
        """Yield what still waits; nothing more comes."""
        while self._held:
            yield from self._release()

    def _release(self) -> Iterator[P]:
        """Yield all there is of the block that has waited longest."""
        block = self._held[0][0]
        mine = [held for held in self._held if held[0] == block]
        self._held = [held for held in self._held if held[0] != block]
        for held in mine:
            yield self._next(*held)

    def _next(self, block: Hashable, piece: P, arguments: str | None) -> P:
        if block != self._open:
            if self._arguments is not None:
                self._closed.add(self._open)
            self._open, self._looked_at = block, -1
            self._arguments = None if arguments is None else []
        if self._arguments is not None and arguments:
            self._arguments.append(arguments)
        return piece

    def _may_close(self) -> bool:
        if self._arguments is None:
            return True
        if len(self._arguments) == self._looked_at:
            return False
        try:
            json.loads("".join(self._arguments))
        except (ValueError, RecursionError):
            self._looked_at = len(self._arguments)
            return False
        return True

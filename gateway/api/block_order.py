"""The order in which an answer's blocks (texts, thinking, calls of tools) are told in events: one after the other, also
where a model writes several calls at once. Clients put them together by what came last."""

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from gateway.tool_calls import ObjectEnd

Tell = Callable[[], Any]  # tells a piece of a block


class BlockOrder:
    """Puts pieces of blocks into an order in which each block is complete before the next one begins. A call is
    complete when its arguments are an object, or at the end; what belongs to other blocks waits until then."""

    def __init__(self) -> None:
        self._open: Hashable | None = None
        self._arguments: list[str] | None = None  # of the open call
        self._end = ObjectEnd()
        self._closed: set[Hashable] = set()  # calls that are complete
        self._held: dict[Hashable, list[tuple[Tell, str | None]]] = {}

    def add(self, block: Hashable, piece: Tell, arguments: str | None = None) -> Iterator[Tell]:
        """Take in a piece of a block, for a call with what it adds to its arguments; yields what may be told now. What
        comes of a call after its end is left out."""
        if block in self._closed:
            return
        if block == self._open:
            yield self._told(piece, arguments)
            return
        self._held.setdefault(block, []).append((piece, arguments))
        while self._held and (self._arguments is None or self._end.reached(self._arguments)):
            yield from self._release()

    @property
    def waits(self) -> bool:
        """Return True if something waits for the end of a call."""
        return bool(self._held)

    def end(self) -> Iterator[Tell]:
        """Yield what still waits; nothing more comes."""
        while self._held:
            yield from self._release()

    def _release(self) -> Iterator[Tell]:
        """Open the block that has waited longest, and yield all there is of it."""
        if self._arguments is not None:
            self._closed.add(self._open)
        self._open = next(iter(self._held))
        held = self._held.pop(self._open)
        self._arguments, self._end = (None if held[0][1] is None else []), ObjectEnd()
        for piece, arguments in held:
            yield self._told(piece, arguments)

    def _told(self, piece: Tell, arguments: str | None) -> Tell:
        if self._arguments is not None and arguments:
            self._arguments.append(arguments)
        return piece

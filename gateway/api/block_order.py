"""Orders the events of an answer's blocks (text, thinking, tool calls) so that blocks follow one another, even if a
model writes several calls at once. Clients add each piece to the block that began last."""

from collections.abc import Callable, Hashable

from gateway.tool_calls import ObjectEnd

Emit = Callable[[], None]  # emits the events of one piece


class BlockOrder:
    """Reorders the pieces of blocks so that each block is complete before the next one begins. A call is complete when
    its arguments are a whole JSON object, or at the end of the answer. Pieces of other blocks wait until then."""

    def __init__(self) -> None:
        self._open: Hashable | None = None
        self._arguments: list[str] | None = None  # of the open call
        self._end = ObjectEnd()
        self._closed: set[Hashable] = set()  # complete calls
        self._waiting: dict[Hashable, list[tuple[Emit, str | None]]] = {}

    def add(self, block: Hashable, piece: Emit, arguments: str | None = None) -> None:
        """Add a piece of a block and emit the pieces that may be sent now. For a call, `arguments` is the text that
        the piece adds to its arguments. Pieces of a complete call are dropped."""
        if block in self._closed:
            return
        if block == self._open:
            self._accept(piece, arguments)
            return
        self._waiting.setdefault(block, []).append((piece, arguments))
        while self._waiting and (self._arguments is None or self._end.reached(self._arguments)):
            self._open_next()

    @property
    def waits(self) -> bool:
        """Return True if pieces wait for the end of a call."""
        return bool(self._waiting)

    def end(self) -> None:
        """Emit all waiting pieces at the end of the answer."""
        while self._waiting:
            self._open_next()

    def _open_next(self) -> None:
        """Open the block that has waited longest and emit its pieces."""
        if self._arguments is not None:
            self._closed.add(self._open)
        self._open = next(iter(self._waiting))
        pieces = self._waiting.pop(self._open)
        self._arguments, self._end = (None if pieces[0][1] is None else []), ObjectEnd()
        for piece, arguments in pieces:
            self._accept(piece, arguments)

    def _accept(self, piece: Emit, arguments: str | None) -> None:
        if self._arguments is not None and arguments:
            self._arguments.append(arguments)
        piece()

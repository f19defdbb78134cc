"""The caller of an API: what authentication ends in, and all that the layers below know of a request.
The limits of a key are enforced here, by `KeyLimits`: edges and selectors filter their rows with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import HttpRequest

from memories.errors import Forbidden, InvalidRequest, NotFound

DEFAULT_BOOK = "main"
ALL_BOOKS = "*"  # stands, in lists and searches, for every book of the owner which the key may use
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """What a limited key may use: these agents, their sessions, and these books; a connected app has one book and no
    agent.

    Without agents and books there are no limits. A limited key whose agents are all gone may use nothing."""

    agents: tuple[str, ...] = ()
    books: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.agents or self.books)

    def filter(self, rows: "QuerySet[Row]", *, book: str = "", agent: str = "") -> "QuerySet[Row]":
        """Return the rows within the limits. `book` and `agent` are the look-ups of their names, such as `book__name`;
        at least one is needed: rows of neither kind are not for limited keys."""
        if not book and not agent:
            raise ValueError("Name the look-up of the row's book or agent.")
        if self and book:
            rows = rows.filter(**{f"{book}__in": self.books})
        if self and agent:
            rows = rows.filter(**{f"{agent}__in": self.agents})
        return rows

    def require_agent(self, name: str, refusal: str) -> None:
        """Raises NotFound with the words of `refusal` for an agent that the key may not use."""
        if self and name not in self.agents:
            raise NotFound(refusal)

    def require_books(self, names: Sequence[str]) -> None:
        """Raises NotFound unless all these books may be used, InvalidRequest for what names no single book."""
        if ALL_BOOKS in names:
            raise InvalidRequest("`*` stands for all books, in lists and searches only. Name one book.", param="book")
        if self and not set(names) <= set(self.books):
            raise NotFound("There is no such book.")

    def book_name(self, asked: str | None) -> str:
        """Return the book to work on: the one that was asked for, else `main`, or the first book of a limited key.

        Raises as `require_books` does."""
        if asked is not None:
            self.require_books([asked])
            return asked
        if not self:
            return DEFAULT_BOOK
        if not self.books:
            raise NotFound("There is no such book.")
        return self.books[0]

    def refuse(self, what: str) -> None:
        """Raises Forbidden for a limited key. `what` is the subject of the sentence."""
        if self:
            raise Forbidden(f"{what} needs a key that is not limited to agents or books.")


UNLIMITED = KeyLimits()


@dataclass(frozen=True, slots=True)
class KeyCeilings:
    """How much a key may spend; 0 = no limit. Days are UTC days, money is in the currency of the prices."""

    tokens_per_day: int = 0
    money_per_day: float = 0.0
    streams_at_once: int = 0

    def __bool__(self) -> bool:
        return bool(self.daily or self.streams_at_once)

    @property
    def daily(self) -> bool:
        """Whether anything is limited by the day."""
        return bool(self.tokens_per_day or self.money_per_day)


NO_CEILINGS = KeyCeilings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The owner, and the key if it was one (whose revocation the opening transaction of a turn looks at again)."""

    owner_id: UUID
    actor: str  # user:ID or key:ID
    key_id: UUID | None = None
    key_sha256: str = ""  # the hash of the key that was sent, which a rotation replaces; "" for a connected app
    limits: KeyLimits = UNLIMITED
    ceilings: KeyCeilings = NO_CEILINGS
    requests_per_minute: int = 0  # 0 = no limit
    read_only: bool = False
    trusted: bool = False
    remembers: bool = True  # False: nothing of memory is read or written, since people would be merged
    app: bool = False  # True: a connected app, which came with an access token

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents that a limited key may use."""
        return self.limits.agents


class ApiRequest(HttpRequest):
    """A request that has passed an API's authentication."""

    auth: Caller

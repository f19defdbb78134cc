"""The caller of an API: the result of authentication, and all that the lower layers know about a request. `KeyLimits`
enforces the limits of a key: edges and selectors filter their rows with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import HttpRequest

from memories.errors import Forbidden, InvalidRequest, NotFound
from memories.limits import BOOK_NAME

DEFAULT_BOOK = "main"
ALL_BOOKS = "*"  # in lists and searches: every book of the owner that the key may use
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """The agents, with their sessions, and the books that a limited key may use; a connected app has one book and no
    agent.

    Without agents and books there are no limits. A limited key whose agents were all deleted may use nothing."""

    agents: tuple[str, ...] = ()
    books: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.agents or self.books)

    def filter(self, rows: "QuerySet[Row]", *, book: str = "", agent: str = "") -> "QuerySet[Row]":
        """Return the rows within the limits. `book` and `agent` are lookups of the names, such as `book__name`; at
        least one is required, since limited keys have no access to other rows."""
        if not book and not agent:
            raise ValueError("Give the lookup of the row's book or agent.")
        if self and book:
            rows = rows.filter(**{f"{book}__in": self.books})
        if self and agent:
            rows = rows.filter(**{f"{agent}__in": self.agents})
        return rows

    def require_agent(self, name: str, refusal: str) -> None:
        """Raise NotFound with the message `refusal` for an agent that the key may not use."""
        if self and name not in self.agents:
            raise NotFound(refusal)

    def require_books(self, names: Sequence[str]) -> None:
        """Raise NotFound unless the key may use all these books, InvalidRequest for a name that no book can have."""
        for name in names:
            check_book_name(name)
        if self and not set(names) <= set(self.books):
            raise NotFound("There is no such book.")

    def book_name(self, asked: str | None) -> str:
        """Return the book to use: the requested one, else `main` or, for a limited key, its first book.

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
        """Raise Forbidden for a limited key. `what` is the subject of the message."""
        if self:
            raise Forbidden(f"{what} needs a key that is not limited to agents or books.")


def check_book_name(name: str, *, param: str = "book") -> None:
    """Raise InvalidRequest for an invalid name of a book."""
    if name == ALL_BOOKS:
        raise InvalidRequest("`*` stands for all books, in lists and searches only. Name one book.", param=param)
    if not name.strip() or len(name) > BOOK_NAME or not name.isprintable():
        raise InvalidRequest(f"A book's name has 1 to {BOOK_NAME} printable characters.", param=param)


UNLIMITED = KeyLimits()


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """Spending limits of a key; 0 = no limit. Days are UTC days, money is in the currency of the prices."""

    tokens_per_day: int = 0
    money_per_day: float = 0.0
    streams_at_once: int = 0

    def __bool__(self) -> bool:
        return bool(self.daily or self.streams_at_once)

    @property
    def daily(self) -> bool:
        """Whether there is a daily limit."""
        return bool(self.tokens_per_day or self.money_per_day)


NO_SPENDING_LIMITS = SpendingLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The owner, and the key if one was used. The opening transaction of a turn checks its revocation again."""

    owner_id: UUID
    actor: str  # user:ID or key:ID
    key_id: UUID | None = None
    key_sha256: str = ""  # hash of the key, which a rotation replaces; "" for a connected app
    limits: KeyLimits = UNLIMITED
    spending_limits: SpendingLimits = NO_SPENDING_LIMITS
    requests_per_minute: int = 0  # 0 = no limit
    read_only: bool = False
    trusted: bool = False
    remembers: bool = True  # False: memory is neither read nor written, since several people may share this caller
    app: bool = False  # True: a connected app, authenticated by an access token

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents that a limited key may use."""
        return self.limits.agents


class ApiRequest(HttpRequest):
    """A request that has passed an API's authentication."""

    auth: Caller

"""Filters of memories by text, metadata and time, for the API's list and search. They are part of the SQL statement, so
that pages stay full; a statement reads at most the rows of one owner."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, F, Func, Q, QuerySet, TextField, Value
from django.db.models.sql.compiler import SQLCompiler
from django.http import QueryDict

from memories.entry_rules import clean_moment
from memories.errors import InvalidRequest
from memories.limits import METADATA_KEYS
from memories.metadata import clean_metadata
from memories.models import Memory
from search.keywords import fold

_PREFIX = "metadata."
_SHOWN = timedelta(milliseconds=1)  # responses truncate times to milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilters:
    """Filters for memories that have all these metadata pairs and were created within a period. Raises InvalidRequest
    for metadata that no memory can have, and for years that not every database supports."""

    metadata: Mapping[str, str] = field(default_factory=dict)
    created_after: datetime | None = None
    created_before: datetime | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", clean_metadata(self.metadata))
        for name in ("created_after", "created_before"):
            object.__setattr__(self, name, clean_moment(getattr(self, name), f"{name} is a time between", name))

    def __bool__(self) -> bool:
        return bool(self.metadata or self.created_after or self.created_before)

    def of(self, rows: "QuerySet[Memory]") -> "QuerySet[Memory]":
        """Return the rows that match."""
        if self.metadata:
            rows = rows.filter(HasPairs(self.metadata))
        if self.created_after:
            shown = self.created_after.replace(microsecond=self.created_after.microsecond // 1000 * 1000)
            rows = rows.filter(created_at__gte=shown + _SHOWN)
        if self.created_before:
            rows = rows.filter(created_at__lt=self.created_before)
        return rows


def contains_text(text: str, *fields: str) -> Q:
    """Return the condition that one of the fields contains the text, whatever its case, width and composition."""
    folded = Folded(Value(text))
    return Q(*(_Contains(Folded(F(name)), folded) for name in fields), _connector=Q.OR)


def metadata_from_query(query: QueryDict) -> dict[str, str]:
    """Return the pairs of a query string's `metadata.<key>=` parameters. Raises InvalidRequest for a key given twice,
    and for more keys than a memory can have."""
    asked = [name for name in query if name.startswith(_PREFIX)]
    if len(asked) > METADATA_KEYS:
        raise InvalidRequest(f"A filter can name at most {METADATA_KEYS} keys of metadata.", param="metadata")
    if any(len(query.getlist(name)) > 1 for name in asked):
        raise InvalidRequest("A filter can name each key of metadata only once.", param="metadata")
    return {name.removeprefix(_PREFIX): str(query[name]) for name in asked}


class Folded(Func):
    """A text without differences of case, width and composition: on SQLite as the strict search folds it, on PostgreSQL
    by its own functions, which differ in rare letters only."""

    function = "daybook_fold"
    output_field = TextField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """Return the SQL for SQLite, and give our function to its connection."""
        connection.ensure_connection()
        with suppress(sqlite3.OperationalError):  # it has the function, which another statement is using
            connection.connection.create_function("daybook_fold", 1, fold, deterministic=True)
        return self.as_sql(compiler, connection, **context)

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """Return the SQL for PostgreSQL: bytes, which it compares many at a time. Searching the characters of a text
        like "aaa…" for "baaa…" takes a hundred times as long."""
        folded = "translate(replace(lower(normalize(%(expressions)s, NFKC)), 'ß', 'ss'), 'ς', 'σ')"
        return self.as_sql(compiler, connection, template=f"convert_to({folded}, 'UTF8')", **context)


class _Contains(Func):
    """True if the first folded text contains the second."""

    function = "instr"
    template = "%(function)s(%(expressions)s) > 0"
    output_field = BooleanField()

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """Return the SQL for PostgreSQL, whose function for bytes has the name of a keyword."""
        return self.as_sql(compiler, connection, function='"position"', **context)


class HasPairs(Func):
    """True for rows whose metadata contains all these pairs. Django's key lookups treat a key of digits as a list
    index, and its `contains` is not supported on SQLite."""

    output_field = BooleanField()

    def __init__(self, pairs: Mapping[str, str]) -> None:
        super().__init__(F("metadata"), *(Value(text) for pair in pairs.items() for text in pair))
        self._pairs = dict(pairs)

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, *args: Any, **kwargs: Any
    ) -> tuple[str, tuple[Any, ...]]:
        """Return the condition for SQLite."""
        column, given = compiler.compile(self.source_expressions[0])
        exists = f"EXISTS (SELECT 1 FROM json_each({column}) AS pair WHERE pair.key = %s AND pair.atom = %s)"  # noqa: S608
        params = [value for pair in self._pairs.items() for value in (*given, *pair)]
        return f"({' AND '.join([exists] * len(self._pairs))})", tuple(params)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **kwargs: Any
    ) -> tuple[str, tuple[Any, ...]]:
        """Return the condition for PostgreSQL."""
        column, given = compiler.compile(self.source_expressions[0])
        return f"({column} @> %s::jsonb)", (*given, json.dumps(self._pairs))

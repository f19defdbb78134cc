"""Compiled SQL that is executed many times with different values: its placeholders, the conversion of values, and the
execution, which bypasses Django's cursors: these are created, wrapped and closed each time, and convert SQLite's
placeholders again. In tests that record queries, Django's cursors are used (docs/decisions/0053)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Field, ForeignKey, JSONField, Model
from django.db.models.sql.compiler import SQLCompiler

T = TypeVar("T")
_Prepare = Callable[[Any], Any]
_PLAIN = frozenset({"BooleanField", "CharField", "IntegerField", "PositiveIntegerField", "TextField"})


class Given(Expression):
    """The placeholder of a value that is given at execution; the model's field converts it for the database."""

    def __init__(self, name: str, model: type[Model], field: str) -> None:
        super().__init__(output_field=field_of(model, field))
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        return "%s", [self]  # Compiled replaces this parameter by the value


def given(model: type[Model], *names: str) -> dict[str, Given]:
    """Return `{name: Given}` for fields of a model, as keyword arguments of `filter` or `update`."""
    return {name: Given(name, model, name) for name in names}


def field_of(model: type[Model], name: str) -> "Field[Any, Any]":
    """Return a field of a model by name, which may be `pk`."""
    meta = model._meta
    found = meta.pk if name == "pk" else meta.get_field(name)
    assert isinstance(found, Field)
    return found


class Compiled:
    """SQL with its parameters in order, constants and `Given`. `converters` belong to the columns of a SELECT, as
    `(position, converters, expression)`."""

    def __init__(self, sql: str, params: Iterable[Any], connection: BaseDatabaseWrapper) -> None:
        self.sql = sql
        self._connection = connection
        self._sqlite = ""  # the SQL with the driver's placeholders, which Django converts at each execution
        if connection.vendor == "sqlite":
            connection.ensure_connection()
            self._sqlite = str(connection.create_cursor().convert_query(sql))
        self.names: tuple[str, ...] = ()
        self.converters: list[tuple[int, Sequence[Callable[..., Any]], Any]] = []
        self._params: list[Any] = []
        self._places: list[tuple[int, str, _Prepare | None]] = []
        for place, param in enumerate(params):
            self._params.append(None if isinstance(param, Given) else param)
            if isinstance(param, Given):
                field = param.output_field
                target = field.target_field if isinstance(field, ForeignKey) else field
                self._places.append((place, param.name, _preparer(target, connection)))

    def params(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the parameters of one execution."""
        params = self._params.copy()
        for place, name, prepare in self._places:
            value = values[name]
            params[place] = value if prepare is None or value is None else prepare(value)
        return params

    def fetch(self, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Execute the SQL and return the rows as the driver returns them."""
        return self._run(params, lambda cursor: cursor.fetchall())

    def convert(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a fetched row with its values converted as Django's fields do."""
        columns = list(row)
        for place, converters, expression in self.converters:
            for converter in converters:
                columns[place] = converter(columns[place], expression, self._connection)
        return tuple(columns)

    def execute(self, params: Sequence[Any]) -> int:
        """Execute the SQL and return the number of changed rows."""
        return self._run(params, lambda cursor: int(cursor.rowcount))

    def _run(self, params: Sequence[Any], result: Callable[[Any], T]) -> T:
        connection = self._connection
        if connection.execute_wrappers or connection.force_debug_cursor:  # tests record queries; DEBUG is off
            with connection.cursor() as recorded:
                recorded.execute(self.sql, params)
                return result(recorded)
        if connection.connection is None:
            connection.ensure_connection()
        if connection.needs_rollback:
            connection.validate_no_broken_transaction()
        with connection.wrap_database_errors:
            if self._sqlite:
                return result(connection.connection.execute(self._sqlite, params))
            with connection.create_cursor() as cursor:
                cursor.execute(self.sql, params)
                return result(cursor)


def _preparer(field: "Field[Any, Any]", connection: BaseDatabaseWrapper) -> _Prepare | None:
    """Return the function that converts a value of the field for the database, or None if none is needed."""
    kind = field.get_internal_type()
    if kind in _PLAIN:
        return None
    if isinstance(field, JSONField):
        return partial(connection.ops.adapt_json_value, encoder=field.encoder)
    prepare = partial(field.get_db_prep_save, connection=connection)
    # Ids and times are half of a turn's parameters, hence the shortcuts.
    if kind == "UUIDField":
        native = connection.features.has_native_uuid_field
        return lambda value: prepare(value) if type(value) is not UUID else value if native else value.hex
    if kind == "DateTimeField" and connection.vendor == "sqlite" and connection.timezone is UTC:
        return lambda value: _time_of(value) if isinstance(value, datetime) and value.tzinfo is UTC else prepare(value)
    return prepare


def _time_of(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(" ")

"""SQL that is executed with other values each time: where they stand, how the database takes them, and how it is
executed. The driver executes it: a cursor of Django's is made, wrapped and closed each time, and puts in SQLite's place
holders anew. On a connection that is watched (in tests) statements can be seen as usual (docs/decisions/0053)."""

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
    """A value that is known when the statement is executed; the field of the model says how the database takes it."""

    def __init__(self, name: str, model: type[Model], field: str) -> None:
        super().__init__(output_field=field_of(model, field))
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        return "%s", [self]  # the parameters of the SQL hold this, until there is a value


def given(model: type[Model], *names: str) -> dict[str, Given]:
    """Return `{name: Given}` for fields of a model, for `filter` and `update`."""
    return {name: Given(name, model, name) for name in names}


def field_of(model: type[Model], name: str) -> "Field[Any, Any]":
    """Return a field of a model; `pk` is one, too."""
    meta = model._meta
    found = meta.pk if name == "pk" else meta.get_field(name)
    assert isinstance(found, Field)
    return found


class Compiled:
    """SQL with its parameters in their order: constants, and names of what is given. `converters` are those of the
    columns that a SELECT returns, by their place."""

    def __init__(self, sql: str, params: Iterable[Any], connection: BaseDatabaseWrapper) -> None:
        self.sql = sql
        self._connection = connection
        self._sqlite = _in_its_words(sql, connection) if connection.vendor == "sqlite" else ""
        self.names: tuple[str, ...] = ()
        self.converters: list[tuple[int, Sequence[Callable[..., Any]], Any]] = []
        self._params: list[Any] = []
        self._places: list[tuple[int, str, _Prepare | None]] = []
        for place, param in enumerate(params):
            self._params.append(None if isinstance(param, Given) else param)
            if isinstance(param, Given):
                field = param.output_field
                target = field.target_field if isinstance(field, ForeignKey) else field
                self._places.append((place, param.name, _preparing(target, connection)))

    def params(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the parameters of one execution."""
        params = self._params.copy()
        for place, name, prepare in self._places:
            value = values[name]
            params[place] = value if prepare is None or value is None else prepare(value)
        return params

    def fetched(self, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Execute it and return the rows as the driver has them."""
        return self._executed(params, lambda cursor: cursor.fetchall())

    def converted(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a row that was fetched with values as the fields of the models have them."""
        columns = list(row)
        for place, converters, expression in self.converters:
            for convert in converters:
                columns[place] = convert(columns[place], expression, self._connection)
        return tuple(columns)

    def changed(self, params: Sequence[Any]) -> int:
        """Execute it and return how many rows it changed."""
        return self._executed(params, lambda cursor: int(cursor.rowcount))

    def _executed(self, params: Sequence[Any], result: Callable[[Any], T]) -> T:
        connection = self._connection
        if connection.execute_wrappers or connection.force_debug_cursor:  # `queries_logged`; DEBUG is off
            with connection.cursor() as watched:
                watched.execute(self.sql, params)
                return result(watched)
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


def _in_its_words(sql: str, connection: BaseDatabaseWrapper) -> str:
    """Return the SQL with the place holders of SQLite's driver, which Django puts in at each execution."""
    connection.ensure_connection()
    return str(connection.create_cursor().convert_query(sql))


def _preparing(field: "Field[Any, Any]", connection: BaseDatabaseWrapper) -> _Prepare | None:
    """Return what makes a value of the field one that the database takes; None where it is one."""
    kind = field.get_internal_type()
    if kind in _PLAIN:
        return None
    if isinstance(field, JSONField):
        return partial(connection.ops.adapt_json_value, encoder=field.encoder)
    prepare = partial(field.get_db_prep_save, connection=connection)
    # Half of a turn's parameters are ids and times.
    if kind == "UUIDField":
        native = connection.features.has_native_uuid_field
        return lambda value: prepare(value) if type(value) is not UUID else value if native else value.hex
    if kind == "DateTimeField" and connection.vendor == "sqlite" and connection.timezone is UTC:
        return lambda value: _time_of(value) if isinstance(value, datetime) and value.tzinfo is UTC else prepare(value)
    return prepare


def _time_of(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(" ")

"""Statements that the ORM compiles once and that are executed many times with different values.

For a turn's statements, the ORM needs several times as long to build and compile one as the database to execute it. The
models remain the only source: a statement is written as a query set or defined by its model, with `Given` as the
placeholder of a value (docs/decisions/0049). They are cached per connection, as are their converters."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Generic, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet
from django.db.models.base import ModelState
from django.db.models.constants import OnConflict
from django.db.models.sql import InsertQuery, UpdateQuery

from memories.database.compiled import Compiled, Given, field_of, given

__all__ = ["Given", "Insert", "RawStatement", "RowFactory", "Select", "Update", "UpdateRow", "given"]

M = TypeVar("M", bound=Model)
_DEFAULT = "default"
_CACHE_ATTRIBUTE = "_daybook_statements"


class _Statement:
    """The base class of statements, which are compiled at their first use on a connection."""

    @property
    def compiled(self) -> Compiled:
        connection = connections[_DEFAULT]
        cache: dict[_Statement, Compiled] = vars(connection).setdefault(_CACHE_ATTRIBUTE, {})
        found = cache.get(self)
        if found is None:
            found = cache[self] = self._compile(connection)
        return found

    def _compile(self, connection: BaseDatabaseWrapper) -> Compiled:
        raise NotImplementedError


class RawStatement(_Statement):
    """A hand-written statement with `%s` as placeholders. Values are passed to the driver unchanged."""

    def __init__(self, sql: Callable[[], str]) -> None:
        self._sql = sql

    def row(self, params: Sequence[Any]) -> tuple[Any, ...] | None:
        """Return the first row, or None."""
        return next(iter(self.compiled.fetch(params)), None)

    def execute(self, params: Sequence[Any]) -> int:
        """Execute the statement and return the number of changed rows."""
        return self.compiled.execute(params)

    def _compile(self, connection: BaseDatabaseWrapper) -> Compiled:
        return Compiled(self._sql(), (), connection)


class Select(_Statement, Generic[M]):
    """A SELECT, from a query set with `Given` placeholders that `build` returns. `select_related` is not supported."""

    def __init__(self, build: Callable[[], "QuerySet[M, Any]"]) -> None:
        self._build = build

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows, with values converted as Django's fields do."""
        compiled = self.compiled
        found = compiled.fetch(compiled.params(values))
        return [compiled.convert(row) for row in found] if compiled.converters else found

    def as_stored(self, **values: Any) -> tuple[list[tuple[Any, ...]], Callable[[tuple[Any, ...]], tuple[Any, ...]]]:
        """Return the rows as the driver returns them, and a function that converts one as `rows` does."""
        compiled = self.compiled
        return compiled.fetch(compiled.params(values)), compiled.convert

    def row(self, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row, or None."""
        return next(iter(self.rows(**values)), None)

    def instances(self, **values: Any) -> list[M]:
        """Return the rows as instances of the model. Not for `values_list` query sets."""
        rows = self.rows(**values)
        names = self.compiled.names
        return [self._build_model.from_db(_DEFAULT, names, row) for row in rows]

    def instance(self, **values: Any) -> M | None:
        """Return the first row as an instance of the model, or None."""
        return next(iter(self.instances(**values)), None)

    def _compile(self, connection: BaseDatabaseWrapper) -> Compiled:
        queryset = self._build()
        self._build_model: type[M] = queryset.model
        compiler = queryset.query.get_compiler(connection=connection)
        sql, params = compiler.as_sql()
        compiled = Compiled(sql, params, connection)
        columns = [column[0] for column in compiler.select]
        compiled.names = tuple(column.target.attname for column in columns if hasattr(column, "target"))
        compiled.converters = [
            (place, converters, expression)
            for place, (converters, expression) in compiler.get_converters(columns).items()
        ]
        return compiled


class RowFactory(Generic[M]):
    """Creates unsaved instances of a model from some values, with defaults for the others. Faster than
    `model(**values)`, which looks up each field and its default every time."""

    def __init__(self, model: type[M]) -> None:
        self._model = model

    def row(self, **values: Any) -> M:
        """Return a new instance. Values are named by attname, such as `owner_id`. Raises TypeError for other names."""
        constants, functions = self._defaults
        if unknown := values.keys() - constants.keys() - functions.keys():
            raise TypeError(f"{self._model.__name__} has no {', '.join(unknown)}")
        row = self._model.__new__(self._model)
        row._state = ModelState()
        attributes = vars(row)
        attributes.update(constants)
        attributes.update(values)
        for name, default in functions.items():
            if name not in values:
                attributes[name] = default()
        return row

    @cached_property
    def _defaults(self) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
        """The defaults by attname, constants and callables. No model here uses database defaults."""
        fields = self._model._meta.concrete_fields
        functions = {f.attname: f.default for f in fields if f.has_default() and callable(f.default)}
        return {f.attname: f.get_default() for f in fields if f.attname not in functions}, functions


class Update(_Statement):
    """`build().update(**sets())`, with `Given` or constants as the new values."""

    def __init__(self, build: Callable[[], "QuerySet[Any, Any]"], sets: Callable[[], Mapping[str, Any]]) -> None:
        self._build, self._sets = build, sets

    def execute(self, **values: Any) -> int:
        """Return the number of updated rows."""
        compiled = self.compiled
        return compiled.execute(compiled.params(values))

    def _compile(self, connection: BaseDatabaseWrapper) -> Compiled:
        query: Any = self._build().query.chain(UpdateQuery)
        query.add_update_values(self._sets())
        query.annotations = {}
        sql, params = query.get_compiler(connection=connection).as_sql()
        return Compiled(sql, params, connection)


class UpdateRow(Generic[M]):
    """Saves these fields of an instance, as `instance.save(update_fields=…)` does."""

    def __init__(self, model: type[M], *fields: str) -> None:
        self._attributes = ("pk", *(field_of(model, name).attname for name in fields))
        # The base manager, since the default one may hide rows.
        self._update = Update(
            lambda: model._base_manager.filter(**given(model, "pk")),
            lambda: {name: Given(field_of(model, name).attname, model, name) for name in fields},
        )

    def execute(self, row: M) -> int:
        """Return the number of updated rows: 0 if the row is gone."""
        return self._update.execute(**{name: getattr(row, name) for name in self._attributes})


class Insert(Generic[M]):
    """Inserts instances of a model. `expressions` replace the instances' values of some fields. With `update_fields`,
    these fields of existing rows are updated instead.

    `bulk_create` does the same in about twice the time, since it examines each field of each row."""

    SIZES = (32, 8)  # rows per statement; a compiled statement for every number of rows would not be worth keeping

    def __init__(
        self, model: type[M], expressions: Callable[[], Mapping[str, Any]] = dict, *, update_fields: Sequence[str] = ()
    ) -> None:
        self._of_count = cache(lambda count: _InsertRows(model, count, expressions(), update_fields))

    def execute(self, rows: Sequence[M], **values: Any) -> None:
        """Insert instances. `values` are the values of `Given` in the expressions."""
        at = 0
        while remaining := len(rows) - at:
            count = next((size for size in self.SIZES if size <= remaining), remaining)
            self._of_count(count).execute(rows[at : at + count], values)
            at += count


class _InsertRows(_Statement):
    def __init__(
        self, model: type[Model], count: int, expressions: Mapping[str, Any], update_fields: Sequence[str]
    ) -> None:
        self._model, self._count, self._expressions, self._update_fields = model, count, expressions, update_fields
        self._fields = [field for field in model._meta.local_concrete_fields if not field.generated]
        assert not any(getattr(field, "auto_now", False) for field in self._fields)
        attributes = [field.attname for field in self._fields if field.name not in expressions]
        self._given = [f"{number}.{name}" for number in range(count) for name in attributes]
        self._values_of = attrgetter(*attributes)

    def execute(self, rows: Sequence[Model], values: dict[str, Any]) -> None:
        values.update(zip(self._given, chain.from_iterable(map(self._values_of, rows)), strict=True))
        compiled = self.compiled
        compiled.execute(compiled.params(values))
        for row in rows:
            row._state.adding, row._state.db = False, _DEFAULT

    def _compile(self, connection: BaseDatabaseWrapper) -> Compiled:
        samples = []
        for number in range(self._count):
            sample = self._model()
            for field in self._fields:
                value = self._expressions.get(field.name) or Given(f"{number}.{field.attname}", self._model, field.name)
                setattr(sample, field.attname, value)
            samples.append(sample)
        query = InsertQuery(
            self._model,
            on_conflict=OnConflict.UPDATE if self._update_fields else None,
            update_fields=[field_of(self._model, name) for name in self._update_fields],
            unique_fields=[field_of(self._model, "pk")],
        )
        query.insert_values(self._fields, samples)
        [(sql, params)] = query.get_compiler(connection=connection).as_sql()
        return Compiled(sql, params, connection)

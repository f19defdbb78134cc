"""Statements that the ORM compiles once and that are executed with other values each time.

Building and compiling a statement takes the ORM several times as long as the database takes to answer one of a turn's.
The models stay the one source: a statement is written as a query set or named by its model, with `Given` in the places
of values (docs/decisions/0049). What is compiled is kept with its connection, since converters belong to one."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Generic, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, Model, QuerySet
from django.db.models.base import ModelState
from django.db.models.constants import OnConflict
from django.db.models.sql import InsertQuery, UpdateQuery

from memories.database.compiled import Compiled, Given, field_of, given

__all__ = ["Given", "Insert", "RawStatement", "RowFactory", "Select", "Update", "UpdateRow", "given"]

M = TypeVar("M", bound=Model)
_DEFAULT = "default"
_KEPT_WITH = "_daybook_statements"
INSERT_SIZES = (32, 8)
"""Many rows are inserted by as many at once; a statement for each number of rows would not be worth keeping."""


class _Statement:
    """What the statements of this module have in common: they are compiled at their first use on a connection."""

    def compiled(self, connection: BaseDatabaseWrapper) -> Compiled:
        kept: dict[_Statement, Compiled] = vars(connection).setdefault(_KEPT_WITH, {})
        found = kept.get(self)
        if found is None:
            found = kept[self] = self._compile(connection)
        return found

    def _compile(self, connection: BaseDatabaseWrapper) -> Compiled:
        raise NotImplementedError


class RawStatement(_Statement):
    """A statement that is written by hand, with `%s` in the places of values, which the database takes as they are."""

    def __init__(self, sql: Callable[[], str]) -> None:
        self._sql = sql

    def row(self, params: Sequence[Any]) -> tuple[Any, ...] | None:
        """Return the first row, or None."""
        return next(iter(self.compiled(connections[_DEFAULT]).fetched(params)), None)

    def execute(self, params: Sequence[Any]) -> int:
        """Return how many rows were changed."""
        return self.compiled(connections[_DEFAULT]).changed(params)

    def _compile(self, connection: BaseDatabaseWrapper) -> Compiled:
        return Compiled(self._sql(), (), connection)


class Select(_Statement, Generic[M]):
    """A query set with `Given` in it, made by `build`. It has no `select_related`; what it locks it locks."""

    def __init__(self, build: Callable[[], "QuerySet[M, Any]"]) -> None:
        self._build = build

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows, with values as the fields of the models have them."""
        return self._rows(connections[_DEFAULT], values)[1]

    def as_stored(self, **values: Any) -> tuple[list[tuple[Any, ...]], Callable[[tuple[Any, ...]], tuple[Any, ...]]]:
        """Return the rows as the driver has them, and what makes of one what `rows` returns."""
        compiled = self.compiled(connections[_DEFAULT])
        return compiled.fetched(compiled.params(values)), compiled.converted

    def row(self, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row, or None."""
        return next(iter(self.rows(**values)), None)

    def instances(self, **values: Any) -> list[M]:
        """Return the rows as instances of the model. For query sets of instances."""
        compiled, rows = self._rows(connections[_DEFAULT], values)
        return [self._build_model.from_db(_DEFAULT, compiled.names, row) for row in rows]

    def instance(self, **values: Any) -> M | None:
        """Return the first row as an instance of the model, or None."""
        return next(iter(self.instances(**values)), None)

    def _rows(
        self, connection: BaseDatabaseWrapper, values: Mapping[str, Any]
    ) -> tuple[Compiled, list[tuple[Any, ...]]]:
        compiled = self.compiled(connection)
        found = compiled.fetched(compiled.params(values))
        return compiled, [compiled.converted(row) for row in found] if compiled.converters else found

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
    """Makes instances of a model from some of its values; the others have their defaults, and none is stored yet.
    `model(**values)` does the same, and looks for each field and its default anew."""

    def __init__(self, model: type[M]) -> None:
        self._model = model

    def row(self, **values: Any) -> M:
        """Return a new instance; values are named as columns are, `owner_id`. Raises TypeError for other names."""
        if values.keys() - self._names:
            raise TypeError(f"{self._model.__name__} has no {', '.join(values.keys() - self._names)}")
        row = self._model.__new__(self._model)
        row._state = ModelState()
        kept = vars(row)
        kept.update(self._constants)
        kept.update(values)
        for name, default in self._made:
            if name not in values:
                kept[name] = default()
        return row

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(field.attname for field in self._model._meta.concrete_fields)

    @cached_property
    def _constants(self) -> dict[str, Any]:
        fields = self._model._meta.concrete_fields
        return {field.attname: field.get_default() for field in fields if not _is_made(field)}

    @cached_property
    def _made(self) -> list[tuple[str, Callable[[], Any]]]:
        return [(field.attname, field.default) for field in self._model._meta.concrete_fields if _is_made(field)]


def _is_made(field: "Field[Any, Any]") -> bool:
    """Return True if each row has a default of its own. No model here leaves defaults to the database."""
    return field.has_default() and callable(field.default)


class Update(_Statement):
    """`build().update(…)`: the values that are set are `Given`, or constants. Returns how many rows there were."""

    def __init__(self, build: Callable[[], "QuerySet[Any, Any]"], sets: Callable[[], Mapping[str, Any]]) -> None:
        self._build, self._sets = build, sets

    def execute(self, **values: Any) -> int:
        """Return how many rows were updated."""
        compiled = self.compiled(connections[_DEFAULT])
        return compiled.changed(compiled.params(values))

    def _compile(self, connection: BaseDatabaseWrapper) -> Compiled:
        query: Any = self._build().query.chain(UpdateQuery)
        query.add_update_values(self._sets())
        query.annotations = {}
        sql, params = query.get_compiler(connection=connection).as_sql()
        return Compiled(sql, params, connection)


class UpdateRow(Generic[M]):
    """Stores these fields of an instance, as `instance.save(update_fields=…)` does."""

    def __init__(self, model: type[M], *fields: str) -> None:
        self._attributes = ("pk", *(field_of(model, name).attname for name in fields))
        # A manager may hide rows; the base manager does not.
        self._update = Update(
            lambda: model._base_manager.filter(**given(model, "pk")),
            lambda: {name: Given(field_of(model, name).attname, model, name) for name in fields},
        )

    def execute(self, row: M) -> int:
        """Return how many rows were updated: 0 where it is gone."""
        return self._update.execute(**{name: getattr(row, name) for name in self._attributes})


class Insert(Generic[M]):
    """Inserts instances of a model, with all their fields. `instead` are expressions for fields, which stand there
    for the value of the instance. With `renewed`, a row that is there gets these fields anew.

    `bulk_create` does the same, and takes about twice as long: it looks at each field of each row anew."""

    def __init__(
        self, model: type[M], instead: Callable[[], Mapping[str, Any]] = dict, *, renewed: Sequence[str] = ()
    ) -> None:
        self._model, self._instead, self._renewed = model, instead, renewed
        self._by_count: dict[int, _InsertRows] = {}

    def execute(self, rows: Sequence[M], **values: Any) -> None:
        """Insert these instances; `values` are what the expressions want to be given."""
        at = 0
        while left := len(rows) - at:
            count = next((part for part in INSERT_SIZES if part <= left), left)
            statement = self._by_count.get(count)
            if statement is None:
                statement = self._by_count[count] = _InsertRows(self._model, count, self._instead(), self._renewed)
            statement.execute(rows[at : at + count], values)
            at += count


class _InsertRows(_Statement):
    def __init__(self, model: type[Model], count: int, instead: Mapping[str, Any], renewed: Sequence[str] = ()) -> None:
        self._model, self._count, self._instead, self._renewed = model, count, instead, renewed
        self._fields = [field for field in model._meta.local_concrete_fields if not field.generated]
        assert not any(getattr(field, "auto_now", False) for field in self._fields)
        attributes = [field.attname for field in self._fields if field.name not in instead]
        self._given = [f"{number}.{name}" for number in range(count) for name in attributes]
        self._values_of = attrgetter(*attributes)

    def execute(self, rows: Sequence[Model], values: dict[str, Any]) -> None:
        compiled = self.compiled(connections[_DEFAULT])
        values.update(zip(self._given, chain.from_iterable(map(self._values_of, rows)), strict=True))
        compiled.changed(compiled.params(values))
        for row in rows:
            row._state.adding, row._state.db = False, _DEFAULT

    def _compile(self, connection: BaseDatabaseWrapper) -> Compiled:
        samples = []
        for number in range(self._count):
            sample = self._model()
            for field in self._fields:
                value = self._instead.get(field.name) or Given(f"{number}.{field.attname}", self._model, field.name)
                setattr(sample, field.attname, value)
            samples.append(sample)
        query = InsertQuery(
            self._model,
            on_conflict=OnConflict.UPDATE if self._renewed else None,
            update_fields=[field_of(self._model, name) for name in self._renewed],
            unique_fields=[field_of(self._model, "pk")],
        )
        query.insert_values(self._fields, samples)
        [(sql, params)] = query.get_compiler(connection=connection).as_sql()
        return Compiled(sql, params, connection)

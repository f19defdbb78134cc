# ruff: noqa: S608 - the statements are made of constants; values are parameters
"""The full-text index of messages: FTS5 on SQLite, a GIN index of `tsvector` on PostgreSQL.

The database maintains the index, so a turn executes no additional statement, and no text is stored twice. On PostgreSQL
it is an expression index. On SQLite it is a contentless table filled by triggers; another table numbers the messages,
since rowids may change in a table without an integer primary key. The owner is one of the indexed words, so a search
reads only the owner's messages. Words are not stemmed, since people write in many languages.

Hundreds of messages may be stored at once as history of a session, and indexing their words takes ten times as long as
storing them. So a trigger only lists them on SQLite, and `history_index` indexes them in short transactions."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from time import monotonic
from typing import Any
from uuid import UUID

from django.db import connection, connections, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.utils import CursorWrapper
from django.db.models.expressions import RawSQL

from memories.database.batches import Slices, run_slices_within

INDEXED = 100_000
"""Characters of a message that are indexed; a `tsvector` is limited to 1 MB."""
MAX_FOUND = 2_000
"""The number of matching messages, the newest, that a search considers."""
PURGE_SECONDS = 1.0
_MERGED_PAGES = 200
_ROLES = "('user', 'assistant')"
# Messages and characters of one transaction of `history_index`, which takes about 10 ms.
_SLICE_MESSAGES = 300
_SLICE_CHARACTERS = 50_000

# Characters at which words are split; PostgreSQL by itself would keep an address, a file name or a tag as one word.
_JOINING = "-./_@:~+&=?#<>"
_OF_OWNER = "array_to_tsvector(ARRAY[owner_id::text])"
_WORDS = (
    f"({_OF_OWNER} || to_tsvector('simple'::regconfig, "
    f"translate(left(text, {INDEXED}), '{_JOINING}', '{' ' * len(_JOINING)}')))"
)
_TEXT = f"substr({{row}}.text, 1, {INDEXED})"
_HAS_WORDS = f"new.role IN {_ROLES} AND new.text <> ''"
_ADD = (
    f"INSERT INTO gateway_message_number (message_id) SELECT new.id WHERE {_HAS_WORDS} AND new.kind <> 'history'; "
    f"INSERT INTO gateway_message_words (rowid, owner, text) SELECT id, new.owner_id, {_TEXT.format(row='new')} "
    "FROM gateway_message_number WHERE message_id = new.id; "
    "INSERT INTO gateway_message_unindexed (owner_id, message_id) "
    f"SELECT new.owner_id, new.id WHERE {_HAS_WORDS} AND new.kind = 'history';"
)
# Older segments contain deleted words until they are merged; gateway_message_erased requests that.
_REMOVE = (
    "INSERT INTO gateway_message_words (gateway_message_words, rowid, owner, text) "
    f"SELECT 'delete', id, old.owner_id, {_TEXT.format(row='old')} "
    "FROM gateway_message_number WHERE message_id = old.id; "
    "DELETE FROM gateway_message_number WHERE message_id = old.id; "
    "DELETE FROM gateway_message_unindexed WHERE owner_id = old.owner_id AND message_id = old.id; "
    "UPDATE gateway_message_erased SET count = count + 1;"
)
_TRIGGERS = {
    "gateway_message_added": f"AFTER INSERT ON gateway_message BEGIN {_ADD} END",
    "gateway_message_removed": f"AFTER DELETE ON gateway_message BEGIN {_REMOVE} END",
    "gateway_message_changed": (
        f"AFTER UPDATE OF id, owner_id, role, text ON gateway_message BEGIN {_REMOVE} {_ADD} END"
    ),
}
_UNINDEXED_TABLE = (
    "CREATE TABLE IF NOT EXISTS gateway_message_unindexed (owner_id char(32) NOT NULL, message_id char(32) NOT NULL, "
    "PRIMARY KEY (owner_id, message_id)) WITHOUT ROWID"
)
_SQLITE_TABLES = (
    _UNINDEXED_TABLE,
    "CREATE TABLE gateway_message_number (id integer PRIMARY KEY AUTOINCREMENT, message_id char(32) NOT NULL UNIQUE)",
    "CREATE TABLE gateway_message_erased (count integer NOT NULL)",
    "INSERT INTO gateway_message_erased VALUES (0)",
    "CREATE VIRTUAL TABLE gateway_message_words USING fts5 "
    "(owner, text, content='', columnsize=0, tokenize='unicode61 remove_diacritics 2')",
)
_SQLITE_FILL = (
    "DELETE FROM gateway_message_unindexed",
    "DELETE FROM gateway_message_number",
    "INSERT INTO gateway_message_words (gateway_message_words) VALUES ('delete-all')",
    "INSERT INTO gateway_message_number (message_id) "
    f"SELECT id FROM gateway_message WHERE role IN {_ROLES} AND text <> '' ORDER BY id",
    "INSERT INTO gateway_message_words (rowid, owner, text) "
    f"SELECT number.id, message.owner_id, {_TEXT.format(row='message')} FROM gateway_message_number AS number "
    "JOIN gateway_message AS message ON message.id = number.message_id ORDER BY number.id",
)
_POSTGRESQL_INDEX = f"CREATE INDEX gateway_message_words ON gateway_message USING gin ({_WORDS}) WHERE role IN {_ROLES}"


def index_create(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Create the index and fill it; for migrations."""
    with schema_editor.connection.cursor() as cursor:
        if schema_editor.connection.vendor == "postgresql":
            cursor.execute(_POSTGRESQL_INDEX)
            return
        for statement in _SQLITE_TABLES:
            cursor.execute(statement)
        _triggers_create(cursor, _TRIGGERS)


def triggers_replace(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Replace SQLite's triggers by the present ones, without filling the index again; for migrations."""
    if schema_editor.connection.vendor != "sqlite":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_UNINDEXED_TABLE)
        for name, trigger in _TRIGGERS.items():
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
            cursor.execute(f"CREATE TRIGGER {name} {trigger}")


def index_drop(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Drop the index; for migrations."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX IF EXISTS gateway_message_words")
        return
    for name in _TRIGGERS:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {name}")
    for table in ("words", "number", "erased", "unindexed"):
        schema_editor.execute(f"DROP TABLE IF EXISTS gateway_message_{table}")


def triggers_ensure(*, using: str, **_: Any) -> None:
    """Create the triggers again and refill the index after a SQLite migration that rebuilt the message table, which
    drops its triggers. A receiver of `post_migrate`."""
    database = connections[using]
    if database.vendor != "sqlite":
        return
    with transaction.atomic(using=using), database.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE tbl_name IN ('gateway_message', 'gateway_message_words')")
        existing = {name for (name,) in cursor.fetchall()}
        if {"gateway_message", "gateway_message_words"} <= existing and not _TRIGGERS.keys() <= existing:
            _triggers_create(cursor, _TRIGGERS.keys() - existing)


def _triggers_create(cursor: CursorWrapper, names: Iterable[str]) -> None:
    for name in names:
        cursor.execute(f"CREATE TRIGGER {name} {_TRIGGERS[name]}")
    for statement in _SQLITE_FILL:
        cursor.execute(statement)


def messages_with(owner_id: UUID, words: Sequence[str]) -> RawSQL:
    """Return a subquery of the ids of an owner's newest MAX_FOUND messages that contain all words. The last word may be
    a prefix. Words consist of letters and digits only."""
    if connection.vendor == "postgresql":
        # OFFSET keeps the planner from scanning the messages by id and parsing each.
        return RawSQL(  # noqa: S611
            f"SELECT id FROM (SELECT id FROM gateway_message WHERE role IN {_ROLES} AND {_WORDS} @@ %s::tsquery "
            f"AND {_WORDS} @@ to_tsquery('simple', %s) OFFSET 0) AS found ORDER BY id DESC LIMIT %s",
            (f"'{owner_id}'", " & ".join(words) + _prefix_mark(words[-1], ":*"), MAX_FOUND),
        )
    quoted = " AND ".join(f'"{word}"' for word in words)
    match = f"owner : {owner_id.hex} AND text : ({quoted}{_prefix_mark(words[-1], ' *')})"
    return RawSQL(
        "SELECT message_id FROM gateway_message_number WHERE id IN (SELECT rowid FROM gateway_message_words "
        "WHERE gateway_message_words MATCH %s ORDER BY rowid DESC LIMIT %s)",
        (match, MAX_FOUND),
    )


def _prefix_mark(word: str, mark: str) -> str:
    # A single letter is a prefix of too many words.
    return mark if len(word) > 1 or not word.isascii() else ""


def history_index(owner_id: UUID) -> Slices[None]:
    """Index the words of an owner's messages that were stored as history, in short transactions. If it is interrupted,
    the worker's sweep indexes the rest. Does nothing on PostgreSQL, which has indexed them already."""
    if connection.vendor != "sqlite":
        return
    while _index_some(owner_id.hex):
        yield


def history_sweep() -> None:
    """Index what is left of all owners' histories, for at most a second; the next call continues."""
    if connection.vendor != "sqlite":
        return
    until = monotonic() + PURGE_SECONDS
    while monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute("SELECT owner_id FROM gateway_message_unindexed LIMIT 1")
            row = cursor.fetchone()
        if row is None:
            return
        run_slices_within(history_index(UUID(row[0])), until - monotonic())


@transaction.atomic
def _index_some(owner: str) -> bool:
    """Index some of an owner's listed messages. Return False if none was listed."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id, min(length(text), {INDEXED}) FROM gateway_message_unindexed JOIN gateway_message "
            "ON id = message_id WHERE gateway_message_unindexed.owner_id = %s ORDER BY message_id LIMIT %s",
            [owner, _SLICE_MESSAGES],
        )
        rows = cursor.fetchall()
        sizes = accumulate(length for _, length in rows)
        chosen = [key for (key, _), size in zip(rows, sizes, strict=True) if size <= _SLICE_CHARACTERS]
        if not rows:
            return False
        through = [owner, chosen[-1] if chosen else rows[0][0]]
        some = "FROM gateway_message_unindexed AS listed {} WHERE listed.owner_id = %s AND listed.message_id <= %s"
        cursor.execute(
            f"INSERT INTO gateway_message_number (message_id) SELECT message_id {some.format('')} ORDER BY message_id",
            through,
        )
        joined = (
            "JOIN gateway_message_number AS number ON number.message_id = listed.message_id "
            "JOIN gateway_message AS message ON message.id = listed.message_id"
        )
        cursor.execute(
            "INSERT INTO gateway_message_words (rowid, owner, text) SELECT number.id, message.owner_id, "
            f"{_TEXT.format(row='message')} {some.format(joined)} ORDER BY number.id",
            through,
        )
        cursor.execute("DELETE FROM gateway_message_unindexed WHERE owner_id = %s AND message_id <= %s", through)
    return True


def erased_purge() -> None:
    """Remove the words of deleted messages from SQLite's index, whose older segments contain them until they are
    merged. Works in short transactions for at most a second; the next call continues."""
    if connection.vendor != "sqlite":
        return
    until = monotonic() + PURGE_SECONDS
    while monotonic() < until:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT count FROM gateway_message_erased")
            (count,) = cursor.fetchone()
            if not count:
                return
            before = connection.connection.total_changes
            cursor.execute(
                "INSERT INTO gateway_message_words (gateway_message_words, rank) VALUES ('merge', %s)", [-_MERGED_PAGES]
            )
            # According to SQLite's documentation, this means that nothing was left to merge.
            if connection.connection.total_changes - before < 2:
                cursor.execute("UPDATE gateway_message_erased SET count = 0")
                return

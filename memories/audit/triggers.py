"""Triggers that make the database itself refuse changes and deletions of audit entries. Migrations create them.
`audit_purge` drops them within a transaction, and so could an administrator of the database (docs/audit.md)."""

from django.db.backends.base.schema import BaseDatabaseSchemaEditor

TABLE = "memories_auditentry"
_REFUSAL = "The audit log is append-only."
_VERBS = ("update", "delete")


def create_statements(vendor: str) -> list[str]:
    """Return the SQL statements that create the triggers on SQLite or PostgreSQL."""
    postgresql = vendor == "postgresql"
    function = (
        "CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
    )
    body = "EXECUTE FUNCTION audit_refuse()" if postgresql else f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    triggers = [f"CREATE TRIGGER audit_no_{verb} BEFORE {verb} ON {TABLE} FOR EACH ROW {body}" for verb in _VERBS]
    return [function, *triggers] if postgresql else triggers


def drop_statements(vendor: str) -> list[str]:
    """Return the SQL statements that drop the triggers."""
    of_table = f" ON {TABLE}" if vendor == "postgresql" else ""
    return [f"DROP TRIGGER IF EXISTS audit_no_{verb}{of_table}" for verb in _VERBS]


def triggers_create(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Create the triggers; for migrations."""
    for statement in create_statements(schema_editor.connection.vendor):
        schema_editor.execute(statement)


def triggers_drop(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Drop the triggers; for migrations."""
    for statement in drop_statements(schema_editor.connection.vendor):
        schema_editor.execute(statement)

"""Triggers that make the database refuse to change or delete entries of the audit log, whatever asks for it.
Called by migrations. Only an administrator of the database itself can drop them (docs/audit.md)."""

from django.db.backends.base.schema import BaseDatabaseSchemaEditor

TABLE = "memories_auditentry"
_REFUSAL = "The audit log is append-only."
_VERBS = ("update", "delete")


def triggers_create(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Create the triggers, on SQLite or PostgreSQL."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
        )
    for verb in _VERBS:
        if schema_editor.connection.vendor == "postgresql":
            body = "EXECUTE FUNCTION audit_refuse()"
        else:
            body = f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
        schema_editor.execute(f"CREATE TRIGGER audit_no_{verb} BEFORE {verb} ON {TABLE} FOR EACH ROW {body}")


def triggers_drop(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Drop them."""
    of_table = f" ON {TABLE}" if schema_editor.connection.vendor == "postgresql" else ""
    for verb in _VERBS:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS audit_no_{verb}{of_table}")

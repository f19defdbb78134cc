"""The group "memory auditor", created by a data migration. In the admin, its members (who are staff) see and edit
memories and documents with their history, undo reviews, and see consolidations without starting or stopping them. They
see no transcripts, keys, users and agents; a superuser may give the group more permissions."""

from typing import Any

from django.apps.registry import Apps
from django.apps.registry import apps as installed
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

AUDITORS = "memory auditor"
# Permissions as app, model, verbs. Owners and books are included because they identify whose memory it is.
PERMISSIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("memories", "memory", ("view", "change", "delete")),
    ("memories", "revision", ("view",)),
    ("memories", "changeset", ("view",)),
    ("memories", "book", ("view",)),
    ("memories", "owner", ("view",)),
    ("memories", "artifact", ("view", "change")),
    ("reviews", "reviewrun", ("view", "change")),
    ("reviews", "consolidationrun", ("view",)),
    ("reviews", "extraction", ("view",)),
)


def auditors_make(apps: Apps = installed, schema_editor: BaseDatabaseSchemaEditor | None = None) -> None:
    """Create the group, or add missing permissions to it; called by a migration's RunPython.

    Missing permissions are created here, because Django does so only after the last migration."""
    group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=AUDITORS)
    for app, model, verbs in PERMISSIONS:
        group.permissions.add(*(_permission(apps, app, model, verb) for verb in verbs))


def auditors_unmake(apps: Apps = installed, schema_editor: BaseDatabaseSchemaEditor | None = None) -> None:
    """Delete the group, to reverse the migration."""
    apps.get_model("auth", "Group").objects.filter(name=AUDITORS).delete()


def _permission(apps: Apps, app: str, model: str, verb: str) -> Any:
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(app_label=app, model=model)
    # The same name that Django uses, so that it recognises the row later.
    name = f"Can {verb} {installed.get_model(app, model)._meta.verbose_name_raw}"
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=f"{verb}_{model}", defaults={"name": name}
    )
    return permission

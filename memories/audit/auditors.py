"""The group "memory auditor", which looks after memories. A data migration creates it. Its members, being staff, see
and edit memories and documents with their history, and take reviews back, in the admin; they see what consolidations
noted and did, but start and stop none. They see no transcript, no key, no user and no agent; a superuser may give the
group more."""

from typing import Any

from django.apps.registry import Apps
from django.apps.registry import apps as installed
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

AUDITORS = "memory auditor"
# Permissions as app, model, verbs. An owner's and a book's row only name whose memory it is.
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
    """Make the group, or give an existing one the permissions it lacks; called as a migration's RunPython.

    Permissions are made here where they are missing: Django makes them after the last migration, so on a new
    database there are none yet."""
    group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=AUDITORS)
    for app, model, verbs in PERMISSIONS:
        group.permissions.add(*(_permission(apps, app, model, verb) for verb in verbs))


def auditors_unmake(apps: Apps = installed, schema_editor: BaseDatabaseSchemaEditor | None = None) -> None:
    """Take the group away: the way back of the migration."""
    apps.get_model("auth", "Group").objects.filter(name=AUDITORS).delete()


def _permission(apps: Apps, app: str, model: str, verb: str) -> Any:
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(app_label=app, model=model)
    # The same words Django would use, so that it finds its own row when it comes by.
    name = f"Can {verb} {installed.get_model(app, model)._meta.verbose_name_raw}"
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=f"{verb}_{model}", defaults={"name": name}
    )
    return permission

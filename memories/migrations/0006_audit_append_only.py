import re

from django.db import migrations

from memories.audit.triggers import triggers_create, triggers_drop

_BATCH = 500
_ACTIONS = {1: "add", 2: "change", 3: "delete"}
_VIEW = 4
_OWNER = re.compile(r"^Opened; owner ([0-9a-f-]{36})\.$")


def admin_log_copy(apps, schema_editor):
    """Copy the entries of the admin's own log, and delete them: their names of rows may be somebody's words (a session
    was named by its title), and they go with the account of the administrator."""
    log, audit = apps.get_model("admin", "LogEntry"), apps.get_model("memories", "AuditEntry")
    owners = {str(row.pk): row for row in apps.get_model("memories", "Owner").objects.select_related("user")}
    while rows := list(log.objects.select_related("user", "content_type").order_by("pk")[:_BATCH]):
        audit.objects.bulk_create([_entry(audit, row, owners) for row in rows])
        log.objects.filter(pk__in=[row.pk for row in rows]).delete()


def _entry(audit, row, owners):
    viewed = row.action_flag == _VIEW
    action = ("view" if row.object_id else "list") if viewed else _ACTIONS.get(row.action_flag, "change")
    opened = _OWNER.match(row.change_message)
    owner = owners.get(opened[1]) if opened else None
    # Django's own messages are JSON and may name rows; ours are sentences without words of anybody.
    note = "" if opened or not viewed and not row.change_message[:1].isupper() else row.change_message
    return audit(
        at=row.action_time,
        actor=row.user.username,
        actor_id=f"user:{row.user_id}",
        action=action,
        kind=row.content_type.model if row.content_type else "",
        object_id=(row.object_id or "")[:80],
        owner_id=opened[1] if opened else "",
        owner=(owner.external_id or (owner.user.username if owner.user else ""))[:255] if owner else "",
        note=note[:200],
    )


class Migration(migrations.Migration):
    """Triggers make the audit log append-only; the admin's own log becomes part of it."""

    dependencies = [
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("memories", "0005_audit"),
    ]

    operations = [
        migrations.RunPython(admin_log_copy, migrations.RunPython.noop),
        migrations.RunPython(lambda apps, editor: triggers_create(editor), lambda apps, editor: triggers_drop(editor)),
    ]

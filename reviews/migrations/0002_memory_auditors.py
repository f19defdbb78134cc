from django.db import migrations

from memories.audit.auditors import auditors_make, auditors_unmake


class Migration(migrations.Migration):
    """The group "memory auditor": may see and edit memories and undo reviews, but not keys, users or agents."""

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("memories", "0001_initial"),
        ("gateway", "0001_initial"),
        ("reviews", "0001_initial"),
    ]

    operations = [migrations.RunPython(auditors_make, auditors_unmake)]

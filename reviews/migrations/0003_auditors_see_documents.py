from django.db import migrations

from memories.audit.auditors import auditors_make


class Migration(migrations.Migration):
    """The group "memory auditor" may see and edit documents, and see consolidations and their notes."""

    dependencies = [("reviews", "0002_memory_auditors")]

    operations = [migrations.RunPython(auditors_make, migrations.RunPython.noop)]

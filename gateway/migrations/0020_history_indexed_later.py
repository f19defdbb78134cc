"""On SQLite, the words of messages that are stored as history are indexed after their transaction."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from gateway.sessions.message_index import triggers_replace


def replace(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    triggers_replace(schema_editor)


class Migration(migrations.Migration):
    dependencies = [("gateway", "0019_clearer_texts")]
    operations = [migrations.RunPython(replace, migrations.RunPython.noop)]

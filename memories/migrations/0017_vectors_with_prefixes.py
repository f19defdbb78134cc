from django.db import migrations


def delete_vectors(apps, schema_editor):
    """Delete vectors of models that expect a prefix before each text: these were made without. They are made again."""
    vectors = apps.get_model("memories", "MemoryVector").objects.using(schema_editor.connection.alias)
    vectors.filter(model__iregex=r"(^|[^a-z0-9])e5-|nomic-embed-text|embedding-?gemma").delete()


class Migration(migrations.Migration):
    dependencies = [("memories", "0016_labels")]

    operations = [migrations.RunPython(delete_vectors, migrations.RunPython.noop, elidable=True)]

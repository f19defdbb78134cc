from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def book_to_books(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The one book of a connected app is the first of its books."""
    keys = apps.get_model("gateway", "ApiKey").objects
    for key in keys.exclude(book="").iterator():
        keys.filter(pk=key.pk).update(books=[key.book])


class Migration(migrations.Migration):
    dependencies = [
        ("gateway", "0014_tags"),
    ]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="books",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="Names of the books it may use; empty: those of its agents, or all.",
            ),
        ),
        migrations.RunPython(book_to_books, migrations.RunPython.noop),
        migrations.RemoveField(
            model_name="apikey",
            name="book",
        ),
    ]

"""Runs name the one that they follow. Of earlier ones it is taken to be the last that began before them with a lower
number; which branch a turn that was replaced twice belonged to was not written down."""

from django.db import migrations, models
from django.db.models import OuterRef, Q, Subquery


def fill(apps, schema_editor):
    runs = apps.get_model("gateway", "Run").objects
    before = runs.filter(
        owner_id=OuterRef("owner_id"), session_id=OuterRef("session_id"), pk__lt=OuterRef("pk"), turn__lt=OuterRef("turn")
    )
    runs.filter(turn__gt=1).update(follows=Subquery(before.order_by("-id").values("pk")[:1]))


class Migration(migrations.Migration):
    dependencies = [("gateway", "0012_people")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="follows",
            field=models.UUIDField(
                blank=True, help_text="The run before it on its branch; none: the first.", null=True
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="reasoning",
            field=models.TextField(
                blank=True,
                default="",
                help_text="What the model told of its thinking, as far as it is kept.",
            ),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="run",
            name="superseded",
            field=models.BooleanField(default=False, help_text="Not on the branch that is shown, or closed too late."),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=Q(("superseded", True)), fields=["session", "follows"], name="run_other_versions"
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]

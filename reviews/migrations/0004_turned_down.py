from typing import Any

from django.db import migrations, models


def mark_turned_down(apps: Any, schema_editor: Any) -> None:
    """Writes that were turned down or expired before: their time runs from the end of their review."""
    runs = apps.get_model("reviews", "ReviewRun").objects.exclude(writes=[]).only("writes", "finished_at")
    for run in runs.iterator():
        if any(write.get("state") in {"rejected", "expired"} for write in run.writes):
            run.turned_down_at = run.finished_at
            run.save(update_fields=["turned_down_at"])


class Migration(migrations.Migration):
    """When writes of a review were turned down, so that they are found again when their time is over."""

    dependencies = [("reviews", "0003_auditors_see_documents")]

    operations = [
        migrations.AddField(
            model_name="reviewrun",
            name="turned_down_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When writes were last turned down or expired; they are kept for a while.",
                null=True,
            ),
        ),
        migrations.RunPython(mark_turned_down, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="reviewrun",
            index=models.Index(
                condition=models.Q(("turned_down_at__isnull", False)),
                fields=["turned_down_at"],
                name="review_turned_down",
            ),
        ),
    ]

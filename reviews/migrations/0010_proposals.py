from typing import Any

from django.db import migrations, models

_PENDING = {"waiting", "rejected", "expired"}


def count_proposals(apps: Any, schema_editor: Any) -> None:
    """Writes that wait, or waited and were turned down, are proposals from now on."""
    reviews = apps.get_model("reviews", "ReviewRun")
    rows = reviews.objects.filter(models.Q(state="awaiting_approval") | models.Q(rejected_at__isnull=False))
    for run in rows.iterator(chunk_size=200):
        pending = sum(write.get("state") in _PENDING for write in run.writes)
        reviews.objects.filter(pk=run.pk).update(proposals=pending)


class Migration(migrations.Migration):
    """Held writes of turns wait in the queue of reviews."""

    dependencies = [("reviews", "0009_ingest")]

    operations = [
        migrations.AddField(
            model_name="reviewrun",
            name="proposals",
            field=models.PositiveSmallIntegerField(default=0, help_text="Writes that wait or waited for a person."),
        ),
        migrations.AlterField(
            model_name="reviewrun",
            name="trigger",
            field=models.CharField(
                choices=[
                    ("interval", "After every few turns"),
                    ("idle", "After a pause"),
                    ("request", "Asked for"),
                    ("ingest", "Messages were brought"),
                    ("turn", "Held in a turn"),
                    ("app", "Held from an app"),
                    ("notes", "Held notes"),
                ],
                max_length=10,
            ),
        ),
        migrations.AddIndex(
            model_name="reviewrun",
            index=models.Index(
                condition=models.Q(("proposals__gt", 0)), fields=["owner", "-id"], name="review_with_proposals"
            ),
        ),
        migrations.RunPython(count_proposals, migrations.RunPython.noop),
    ]

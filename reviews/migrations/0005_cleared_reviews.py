import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    """Proposals that waited when their book was cleared, for an undo of the clear."""

    dependencies = [
        ("memories", "0001_initial"),
        ("reviews", "0004_turned_down"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClearedReview",
            fields=[
                (
                    "review",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="cleared",
                        serialize=False,
                        to="reviews.reviewrun",
                    ),
                ),
                ("change_set", models.UUIDField(help_text="The change set of the clear.")),
                ("writes", models.JSONField()),
                ("waits_since", models.DateTimeField(blank=True, null=True)),
                ("cleared_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="cleared_reviews", to="memories.owner"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["owner", "change_set"], name="cleared_review_of_change_set"),
                    models.Index(fields=["cleared_at"], name="cleared_review_age"),
                ],
            },
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    """Reviews of messages that a client brings, once for each of its keys."""

    dependencies = [("reviews", "0008_rejected_at")]

    operations = [
        migrations.AddField(
            model_name="reviewrun",
            name="idempotency_key",
            field=models.CharField(blank=True, help_text="Of the request that brought messages.", max_length=255),
        ),
        migrations.AddField(
            model_name="reviewrun",
            name="request_hash",
            field=models.CharField(blank=True, help_text="Keyed hash of that request.", max_length=64),
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
                ],
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="reviewrun",
            constraint=models.UniqueConstraint(
                condition=models.Q(("idempotency_key", ""), _negated=True),
                fields=("owner", "idempotency_key"),
                name="review_idempotency_key_once_per_owner",
            ),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reviews", "0010_proposals")]

    operations = [
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
                    ("import", "Held from an import"),
                ],
                max_length=10,
            ),
        ),
    ]

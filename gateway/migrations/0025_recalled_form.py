from django.db import migrations, models

import gateway.recalled


class Migration(migrations.Migration):
    """The column stays as it is: it holds JSON in both forms."""

    dependencies = [("gateway", "0024_message_participant")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="run",
                    name="recalled",
                    field=models.JSONField(
                        default=list,
                        encoder=gateway.recalled.RecalledEncoder,
                        decoder=gateway.recalled.RecalledDecoder,
                    ),
                )
            ]
        )
    ]

from django.db import migrations, models

import memories.json_output


class Migration(migrations.Migration):
    dependencies = [
        ('gateway', '0015_key_books'),
    ]
    # How values are written changes no column: SQLite would copy every message into a new table.
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='message',
                    name='parts',
                    field=models.JSONField(
                        blank=True,
                        encoder=memories.json_output.LongTextEncoder,
                        help_text='Content parts, where the message is more than text.',
                        null=True,
                    ),
                ),
            ],
        ),
    ]

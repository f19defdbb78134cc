from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ('memories', '0018_audit_indexes'),
    ]
    # The default changes no column: SQLite would copy every owner into a new table.
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='owner',
                    name='time_zone',
                    field=models.CharField(
                        blank=True, help_text='Empty until a browser has named its own: UTC.', max_length=64
                    ),
                ),
            ],
        ),
    ]

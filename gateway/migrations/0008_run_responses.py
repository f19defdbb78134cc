from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('gateway', '0007_key_expires'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='responses',
            field=models.JSONField(blank=True, editable=False, help_text='What /v1/responses keeps of its requests, by part of the run.', null=True),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    """Columns that identify a conversation by its content are named for what they hold: a hash of the history.

    An index is made anew, because Django keeps the old name of a renamed column in it."""

    dependencies = [("gateway", "0003_run_injected")]

    operations = [
        migrations.RemoveIndex(model_name="session", name="session_by_chain"),
        migrations.RemoveIndex(model_name="run", name="run_by_chain_before"),
        migrations.RenameField(model_name="session", old_name="chain", new_name="history_hash"),
        migrations.RenameField(model_name="run", old_name="chain_before", new_name="history_hash_before"),
        migrations.RenameField(model_name="run", old_name="chain_after", new_name="history_hash_after"),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["owner", "agent", "history_hash"], name="session_by_history"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                fields=["owner", "history_hash_before", "user_key", "-id"], name="run_by_history_before"
            ),
        ),
    ]

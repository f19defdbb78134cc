from django.db import migrations, models


class Migration(migrations.Migration):
    """The time of a rejection is named like the state `rejected`.

    The index is made anew, because Django keeps the old name of a renamed column in it."""

    dependencies = [("reviews", "0007_review_holder")]

    operations = [
        migrations.RemoveIndex(model_name="reviewrun", name="review_turned_down"),
        migrations.RenameField(model_name="reviewrun", old_name="turned_down_at", new_name="rejected_at"),
        migrations.AddIndex(
            model_name="reviewrun",
            index=models.Index(
                condition=models.Q(("rejected_at__isnull", False)), fields=["rejected_at"], name="review_rejected"
            ),
        ),
    ]

"""A memory may have a vector of each model, in half of the bytes: the rows go over into a table of the new form."""

import django.db.models.deletion
import numpy as np
from django.db import migrations, models

BATCH = 500


def go_over(apps, schema_editor):
    old, new = apps.get_model("memories", "OldVector"), apps.get_model("memories", "MemoryVector")
    rows = []
    for row in old.objects.order_by("pk").iterator(chunk_size=BATCH):
        values = np.frombuffer(bytes(row.values), dtype="<f4")
        values = values / max(float(np.linalg.norm(values)), 1e-9)  # half floats end at 65,504
        rows.append(
            new(
                memory_id=row.pk,
                owner_id=row.owner_id,
                book_id=row.book_id,
                model=row.model,
                content_key=row.content_key,
                values=values.astype("<f2").tobytes(),
            )
        )
        if len(rows) == BATCH:
            new.objects.bulk_create(rows)
            rows = []
    new.objects.bulk_create(rows)


class Migration(migrations.Migration):
    dependencies = [("memories", "0011_evidence")]

    operations = [
        migrations.RenameModel("MemoryVector", "OldVector"),
        migrations.CreateModel(
            name="MemoryVector",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model", models.CharField(max_length=200)),
                ("content_key", models.CharField(help_text="Hash of the content it was made of.", max_length=64)),
                ("values", models.BinaryField(help_text="16-bit floats, little endian.")),
                (
                    "book",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="memory_vectors", to="memories.book"
                    ),
                ),
                (
                    "memory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="vectors", to="memories.memory"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="memory_vectors", to="memories.owner"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["owner", "book"], name="vectors_of_book"),
                    models.Index(fields=["owner", "model", "content_key"], name="vectors_of_text"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("memory", "model"), name="one_vector_by_model"),
                ],
            },
        ),
        migrations.RunPython(go_over, migrations.RunPython.noop),
        migrations.DeleteModel("OldVector"),
    ]

"""What a new database gets instead of the migrations that it replaces: each of them would have Django render its models
anew. A database that has only some of those goes on with them."""

import django.db.models.deletion
import django.utils.timezone
import memories.ids
from django.db import migrations, models

from memories.audit.auditors import auditors_make, auditors_unmake


class Migration(migrations.Migration):

    replaces = [
        ('reviews', '0001_initial'),
        ('reviews', '0002_memory_auditors'),
        ('reviews', '0003_auditors_see_documents'),
        ('reviews', '0004_turned_down'),
        ('reviews', '0005_cleared_reviews'),
        ('reviews', '0006_share_of_a_start'),
        ('reviews', '0007_review_holder'),
        ('reviews', '0008_rejected_at'),
        ('reviews', '0009_ingest'),
        ('reviews', '0010_proposals'),
        ('reviews', '0011_held_imports'),
        ('reviews', '0012_words'),
    ]

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('memories', '0001_initial'),
        ('gateway', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ConsolidationRun',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('scheduled', 'Scheduled'), ('running', 'Running'), ('paused', 'Paused'), ('completed', 'Completed'), ('nothing_to_do', 'Nothing new'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='scheduled', max_length=13)),
                ('phase', models.CharField(choices=[('extraction', 'Reading sessions'), ('synthesis', 'Writing documents'), ('done', 'Done')], default='extraction', max_length=10)),
                ('trigger', models.CharField(choices=[('startup', 'Start of the worker'), ('schedule', 'Schedule'), ('request', 'Asked for')], max_length=8)),
                ('actor', models.CharField(default='system', max_length=80)),
                ('rebuild', models.BooleanField(default=False, help_text='Asked for: no cool-down.')),
                ('force', models.BooleanField(default=False, help_text='Write the documents also when nothing changed.')),
                ('book_epoch', models.PositiveIntegerField()),
                ('selected', models.BooleanField(default=False, help_text='Its sessions were chosen.')),
                ('sessions_total', models.PositiveIntegerField(default=0)),
                ('sessions_done', models.PositiveIntegerField(default=0)),
                ('sessions_empty', models.PositiveIntegerField(default=0, help_text='Sessions with nothing durable.')),
                ('sessions_failed', models.PositiveIntegerField(default=0)),
                ('attempts', models.PositiveSmallIntegerField(default=0, help_text='Claims since the last progress.')),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='Failed tries of the synthesis.')),
                ('requests', models.PositiveIntegerField(default=0)),
                ('tokens', models.PositiveBigIntegerField(default=0)),
                ('redacted', models.PositiveIntegerField(default=0, help_text='Secrets taken out of what the models wrote.')),
                ('dropped', models.PositiveIntegerField(default=0, help_text='Lines and skills left out by the scan or for their names.')),
                ('ceiling', models.CharField(blank=True, help_text='The limit that ended it early.', max_length=10, verbose_name='limit reached')),
                ('written', models.JSONField(default=list, help_text='Paths of documents written.')),
                ('removed', models.JSONField(default=list)),
                ('kept', models.JSONField(default=list)),
                ('change_set', models.UUIDField(blank=True, null=True)),
                ('prompts', models.JSONField(default=dict, help_text='Hashes of the prompts.')),
                ('error', models.JSONField(blank=True, null=True)),
                ('not_before', models.DateTimeField(default=django.utils.timezone.now)),
                ('enqueued_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('book', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='consolidation_runs', to='memories.book')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='consolidation_runs', to='memories.owner')),
                ('max_sessions', models.PositiveIntegerField(blank=True, help_text='Its share of the sessions that one start may read; empty: all of them.', null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['owner', '-id'], name='consolidation_of_owner'), models.Index(condition=models.Q(('state__in', ('scheduled', 'running', 'paused'))), fields=['not_before'], name='consolidation_open')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', ('scheduled', 'running', 'paused'))), fields=('book',), name='consolidation_one_open_per_book')],
            },
        ),
        migrations.CreateModel(
            name='ConsolidationState',
            fields=[
                ('book', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='consolidation', serialize=False, to='memories.book')),
                ('changes', models.PositiveBigIntegerField(default=0)),
                ('synthesized', models.PositiveBigIntegerField(default=0)),
                ('artifact_versions', models.JSONField(default=dict, help_text='Versions of the documents after the last synthesis.')),
                ('from_notes', models.BooleanField(default=False, help_text="Something was forgotten: the next synthesis reads notes and people's lines only.")),
                ('last_synthesis_at', models.DateTimeField(blank=True, null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='consolidation_states', to='memories.owner')),
            ],
        ),
        migrations.CreateModel(
            name='Extraction',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('queued', 'Waiting'), ('extracted', 'Extracted'), ('empty', 'Nothing durable'), ('failed', 'Failed'), ('passed', 'Passed over')], default='passed', max_length=9)),
                ('raw_memory', models.TextField(blank=True)),
                ('synopsis', models.TextField(blank=True)),
                ('through_seq', models.PositiveIntegerField(default=0, help_text='Last message that was dealt with.')),
                ('floor_seq', models.PositiveIntegerField(default=0, help_text='Messages up to here are never read again.')),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('not_before', models.DateTimeField(default=django.utils.timezone.now)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('usage', models.JSONField(default=dict)),
                ('redacted', models.PositiveIntegerField(default=0)),
                ('error', models.JSONField(blank=True, null=True)),
                ('before_clear', models.JSONField(blank=True, help_text='What an undo of the clear restores.', null=True)),
                ('cleared_at', models.DateTimeField(blank=True, null=True)),
                ('cleared_by', models.UUIDField(blank=True, help_text='The change set of the clear.', null=True)),
                ('said_at', models.DateTimeField(default=django.utils.timezone.now, help_text='When the session was last active.')),
                ('extracted_at', models.DateTimeField(blank=True, null=True)),
                ('book', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='extractions', to='memories.book')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='extractions', to='memories.owner')),
                ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='extractions', to='reviews.consolidationrun')),
                ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='extraction', to='gateway.session')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'book', '-said_at'], name='extraction_of_book'), models.Index(fields=['run', 'state'], name='extraction_of_run')],
            },
        ),
        migrations.CreateModel(
            name='ReviewRun',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('scheduled', 'Scheduled'), ('running', 'Running'), ('awaiting_approval', 'Waiting'), ('saved', 'Saved'), ('nothing_to_save', 'Nothing new'), ('timed_out', 'Timed out'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('undone', 'Undone')], default='scheduled', max_length=20)),
                ('trigger', models.CharField(choices=[('interval', 'After every few turns'), ('idle', 'After a pause'), ('request', 'Asked for'), ('ingest', 'Messages were brought'), ('turn', 'Held in a turn'), ('app', 'Held from an app'), ('notes', 'Held notes'), ('import', 'Held from an import')], max_length=10)),
                ('first_seq', models.PositiveIntegerField(help_text='First message to review; some before it are shown as context.')),
                ('last_seq', models.PositiveIntegerField(help_text='Last message of the frozen conversation.')),
                ('frozen_hash', models.CharField(blank=True, help_text='Hash of the messages the model was given.', max_length=64)),
                ('agent_name', models.CharField(max_length=64)),
                ('settings', models.JSONField(default=dict, help_text="The agent's review settings when it was scheduled.")),
                ('book_epoch', models.PositiveIntegerField()),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('lease_token', models.UUIDField(blank=True, null=True)),
                ('lease_expires_at', models.DateTimeField(blank=True, null=True)),
                ('not_before', models.DateTimeField(default=django.utils.timezone.now, help_text='When the next attempt may start.')),
                ('enqueued_at', models.DateTimeField(blank=True, null=True)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('prompt_sha256', models.CharField(blank=True, max_length=64)),
                ('usage', models.JSONField(default=dict)),
                ('steps', models.PositiveSmallIntegerField(default=0)),
                ('dropped_calls', models.JSONField(default=dict, help_text='Names of dropped tool calls and how often.')),
                ('writes', models.JSONField(default=list)),
                ('change_set', models.UUIDField(blank=True, null=True)),
                ('error', models.JSONField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('book', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='review_runs', to='memories.book')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='review_runs', to='memories.owner')),
                ('session', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='review_runs', to='gateway.session')),
                ('holder', models.UUIDField(blank=True, help_text='The process that executes it.', null=True)),
                ('rejected_at', models.DateTimeField(blank=True, help_text='When writes were last rejected or expired; they are kept for a while.', null=True)),
                ('idempotency_key', models.CharField(blank=True, help_text='Of the request that brought messages.', max_length=255)),
                ('request_hash', models.CharField(blank=True, help_text='Keyed hash of that request.', max_length=64)),
                ('proposals', models.PositiveSmallIntegerField(default=0, help_text='Writes that wait or waited for a person.')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', '-id'], name='review_of_owner'), models.Index(fields=['owner', 'started_at'], name='review_of_day'), models.Index(fields=['owner', 'book', '-finished_at'], name='review_of_book'), models.Index(condition=models.Q(('state', 'scheduled')), fields=['not_before'], name='review_scheduled'), models.Index(condition=models.Q(('state', 'running')), fields=['lease_expires_at'], name='review_lease'), models.Index(condition=models.Q(('state', 'awaiting_approval')), fields=['finished_at'], name='review_waiting'), models.Index(condition=models.Q(('rejected_at__isnull', False)), fields=['rejected_at'], name='review_rejected'), models.Index(condition=models.Q(('proposals__gt', 0)), fields=['owner', '-id'], name='review_with_proposals')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'running')), fields=('session',), name='review_one_running_per_session'), models.UniqueConstraint(condition=models.Q(('idempotency_key', ''), _negated=True), fields=('owner', 'idempotency_key'), name='review_idempotency_key_once_per_owner')],
            },
        ),
        migrations.CreateModel(
            name='ConsolidationDay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('requests', models.PositiveIntegerField(default=0)),
                ('tokens', models.PositiveBigIntegerField(default=0)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='consolidation_days', to='memories.owner')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('owner', 'day'), name='consolidation_day_once')],
            },
        ),
        migrations.CreateModel(
            name='ClearedReview',
            fields=[
                ('review', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='cleared', serialize=False, to='reviews.reviewrun')),
                ('change_set', models.UUIDField(help_text='The change set of the clear.')),
                ('writes', models.JSONField()),
                ('waits_since', models.DateTimeField(blank=True, null=True)),
                ('cleared_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='cleared_reviews', to='memories.owner')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'change_set'], name='cleared_review_of_change_set'), models.Index(fields=['cleared_at'], name='cleared_review_age')],
            },
        ),
        migrations.RunPython(auditors_make, auditors_unmake),
    ]

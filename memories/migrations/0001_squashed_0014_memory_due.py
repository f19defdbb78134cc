"""What a new database gets instead of the migrations that it replaces: each of them would have Django render its models
anew. A database that has only some of those goes on with them."""

import django.db.models.deletion
import django.utils.timezone
import memories.ids
import memories.models.erasures
import uuid
from django.conf import settings
from django.db import migrations, models

from memories.audit.triggers import triggers_create, triggers_drop


class Migration(migrations.Migration):

    replaces = [
        ('memories', '0001_initial'),
        ('memories', '0002_scan_days'),
        ('memories', '0003_indexes'),
        ('memories', '0004_notification_book'),
        ('memories', '0005_audit'),
        ('memories', '0006_audit_append_only'),
        ('memories', '0007_cache_invalidations'),
        ('memories', '0008_scan_renewal'),
        ('memories', '0009_erasures'),
        ('memories', '0010_memory_metadata'),
        ('memories', '0011_evidence'),
        ('memories', '0012_vectors_by_model'),
        ('memories', '0013_memory_page_orders'),
        ('memories', '0014_memory_due'),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Owner',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('namespace', models.CharField(blank=True, max_length=64)),
                ('external_id', models.CharField(blank=True, max_length=255)),
                ('memory_seq', models.PositiveBigIntegerField(default=0, help_text='Number of the newest memory.')),
                ('notification_seq', models.PositiveBigIntegerField(default=0, help_text='Number of the newest notification.')),
                ('time_zone', models.CharField(default='UTC', max_length=64)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('parent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='end_users', to='memories.owner')),
                ('user', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='owner', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('parent__isnull', False)), fields=('parent', 'namespace', 'external_id'), name='owner_end_user_once')],
            },
        ),
        migrations.CreateModel(
            name='Book',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=64)),
                ('generation', models.PositiveBigIntegerField(default=1, help_text='Grows with every change of what may be injected.')),
                ('epoch', models.PositiveIntegerField(default=1, help_text='Grows when background work of before must not be applied.')),
                ('next_expiry_at', models.DateTimeField(blank=True, null=True)),
                ('last_write_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='books', to='memories.owner')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('next_expiry_at__isnull', False)), fields=['next_expiry_at'], name='book_next_expiry')],
                'constraints': [models.UniqueConstraint(fields=('owner', 'name'), name='book_name_once_per_owner')],
            },
        ),
        migrations.CreateModel(
            name='BookLimits',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64, unique=True)),
                ('user_char_limit', models.PositiveIntegerField()),
                ('memory_char_limit', models.PositiveIntegerField()),
            ],
            options={
                'verbose_name_plural': 'book limits',
            },
        ),
        migrations.CreateModel(
            name='Lease',
            fields=[
                ('name', models.CharField(max_length=120, primary_key=True, serialize=False)),
                ('token', models.UUIDField()),
                ('holder', models.CharField(blank=True, max_length=255)),
                ('expires_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Artifact',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('path', models.CharField(max_length=120)),
                ('path_key', models.CharField(editable=False, help_text='The path without case: no two may clash.', max_length=120)),
                ('content', models.TextField(blank=True)),
                ('version', models.PositiveIntegerField(default=1)),
                ('write_origin', models.CharField(choices=[('tool', 'Agent'), ('background_review', 'Review'), ('consolidation', 'Consolidated'), ('user', 'You'), ('admin', 'Admin'), ('import', 'Import'), ('system', 'System')], max_length=20)),
                ('kept', models.BooleanField(default=False, help_text='Consolidation no longer names it, but a person edited it.')),
                ('person_lines', models.JSONField(blank=True, default=list, help_text='Lines that a person wrote; they stay.')),
                ('struck_lines', models.JSONField(blank=True, default=list, help_text='Lines that a person took out; they stay out.')),
                ('scan_hash', models.CharField(blank=True, editable=False, max_length=64)),
                ('scan_rule', models.CharField(blank=True, help_text='The rule that keeps it out of answers.', max_length=64)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('book', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifacts', to='memories.book')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifacts', to='memories.owner')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'book', 'path'], name='artifact_of_book'), models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='artifact_tombstone')],
                'constraints': [models.UniqueConstraint(fields=('book', 'path_key'), name='artifact_path_once_per_book')],
            },
        ),
        migrations.CreateModel(
            name='Notification',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('seq', models.PositiveBigIntegerField()),
                ('kind', models.CharField(choices=[('review.saved', 'Review Saved'), ('review.awaiting_approval', 'Review Awaiting Approval'), ('review.undone', 'Review Undone'), ('memory.changed', 'Memory Changed'), ('consolidation.finished', 'Consolidation Finished'), ('resync', 'Resync')], max_length=32)),
                ('text', models.TextField(blank=True)),
                ('review_id', models.UUIDField(blank=True, null=True)),
                ('memory_numbers', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notifications', to='memories.owner')),
                ('book', models.CharField(blank=True, help_text='Name of the book it is about; empty: of none.', max_length=64)),
            ],
            options={
                'indexes': [models.Index(fields=['created_at'], name='notification_age')],
                'constraints': [models.UniqueConstraint(fields=('owner', 'seq'), name='notification_seq_once_per_owner')],
            },
        ),
        migrations.CreateModel(
            name='Memory',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveBigIntegerField()),
                ('target', models.CharField(choices=[('user', 'About you'), ('memory', 'About your work')], max_length=8)),
                ('category', models.CharField(default='general', max_length=40)),
                ('content', models.TextField()),
                ('content_key', models.CharField(editable=False, help_text='Hash of the normalised content.', max_length=64)),
                ('keywords', models.JSONField(blank=True, default=list)),
                ('keywords_for', models.CharField(blank=True, editable=False, help_text='Content they were asked for.', max_length=64)),
                ('write_origin', models.CharField(choices=[('tool', 'Agent'), ('background_review', 'Review'), ('consolidation', 'Consolidated'), ('user', 'You'), ('admin', 'Admin'), ('import', 'Import'), ('system', 'System')], max_length=20)),
                ('pinned', models.BooleanField(default=False)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('usage_count', models.PositiveIntegerField(default=0)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('version', models.PositiveIntegerField(default=1)),
                ('session_id', models.UUIDField(blank=True, null=True)),
                ('run_id', models.UUIDField(blank=True, null=True)),
                ('review_id', models.UUIDField(blank=True, null=True)),
                ('scan_hash', models.CharField(blank=True, editable=False, help_text='What the verdict is of.', max_length=64)),
                ('scan_rule', models.CharField(blank=True, help_text='The rule that keeps it out of answers.', max_length=64)),
                ('scan_reason', models.CharField(blank=True, max_length=200)),
                ('allowed_hash', models.CharField(blank=True, help_text='An administrator allowed exactly this text.', max_length=64)),
                ('content_changed_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('book', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memories', to='memories.book')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memories', to='memories.owner')),
                ('metadata', models.JSONField(blank=True, default=dict, help_text='Texts by key, for programs; no model is given it.')),
                ('evidence_kind', models.CharField(blank=True, choices=[('own_words', 'You said'), ('pasted', 'From text you pasted'), ('tool', 'From a tool or document'), ('assistant', 'The assistant said'), ('recalled', 'From an earlier memory'), ('hand', 'Written by hand'), ('none', 'No quote')], max_length=10)),
                ('evidence_message_id', models.UUIDField(blank=True, null=True)),
                ('evidence_quote', models.TextField(blank=True)),
                ('evidence_run_id', models.UUIDField(blank=True, help_text='The turn in which it was said.', null=True)),
                ('evidence_session_id', models.UUIDField(blank=True, null=True)),
                ('evidence_start', models.PositiveIntegerField(blank=True, help_text='Where the quote stands in the message, in characters.', null=True)),
            ],
            options={
                'verbose_name_plural': 'memories',
                'indexes': [models.Index(condition=models.Q(('deleted_at__isnull', True)), fields=['owner', 'book', 'number'], name='memory_live'), models.Index(fields=['book', 'content_key'], name='memory_same_content'), models.Index(fields=['owner', 'session_id'], name='memory_of_session'), models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['book', 'expires_at'], name='memory_expiry'), models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='memory_tombstone'), models.Index(condition=models.Q(('pinned', True)), fields=['-id'], name='memory_pinned'), models.Index(condition=models.Q(('scan_rule', ''), _negated=True), fields=['-id'], name='memory_scanned_out'), models.Index(fields=['target', '-id'], name='memory_by_target'), models.Index(fields=['category', '-id'], name='memory_by_category'), models.Index(fields=['write_origin', '-id'], name='memory_by_origin'), models.Index(fields=['last_used_at'], name='memory_by_last_use'), models.Index(fields=['created_at'], name='memory_by_creation'), models.Index(condition=models.Q(('evidence_session_id__isnull', False)), fields=['owner', 'evidence_session_id'], name='memory_evidence'), models.Index(condition=models.Q(('deleted_at__isnull', True)), fields=['owner', 'book', '-updated_at', '-number'], name='memory_last_changed'), models.Index(condition=models.Q(('deleted_at__isnull', True)), fields=['owner', 'book', '-usage_count', '-number'], name='memory_most_recalled'), models.Index(models.F('owner'), models.F('book'), models.Func('content', output_field=models.TextField(), template='LOWER(SUBSTR(%(expressions)s, 1, 80))'), models.F('number'), condition=models.Q(('deleted_at__isnull', True)), name='memory_by_text'), models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['owner', 'book', '-deleted_at', '-number'], name='memory_last_deleted'), models.Index(condition=models.Q(('deleted_at__isnull', True), ('expires_at__isnull', False)), fields=['expires_at'], name='memory_due')],
                'constraints': [models.UniqueConstraint(fields=('owner', 'number'), name='memory_number_once_per_owner')],
            },
        ),
        migrations.CreateModel(
            name='ChangeSet',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('tool', 'Tool'), ('review', 'Review'), ('approval', 'Approval'), ('edit', 'Edit'), ('undo', 'Undo'), ('import', 'Import'), ('clear', 'Clear'), ('system', 'System')], max_length=10)),
                ('actor', models.CharField(help_text='user:ID, staff:ID, key:ID, model or system.', max_length=80)),
                ('write_origin', models.CharField(choices=[('tool', 'Agent'), ('background_review', 'Review'), ('consolidation', 'Consolidated'), ('user', 'You'), ('admin', 'Admin'), ('import', 'Import'), ('system', 'System')], max_length=20)),
                ('session_id', models.UUIDField(blank=True, null=True)),
                ('run_id', models.UUIDField(blank=True, null=True)),
                ('review_id', models.UUIDField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('book', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='change_sets', to='memories.book')),
                ('undoes', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='undone_by', to='memories.changeset')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='change_sets', to='memories.owner')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'run_id'], name='change_set_of_run'), models.Index(condition=models.Q(('review_id__isnull', False)), fields=['review_id'], name='change_set_of_review'), models.Index(condition=models.Q(('kind', 'clear')), fields=['book', '-created_at'], name='change_set_clear')],
            },
        ),
        migrations.CreateModel(
            name='ArtifactRevision',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('version', models.PositiveIntegerField()),
                ('action', models.CharField(choices=[('write', 'Write'), ('remove', 'Remove'), ('undo', 'Undo')], max_length=8)),
                ('before', models.JSONField(help_text='The artifact before; empty for a new one.', null=True)),
                ('after', models.JSONField(help_text='The artifact after.')),
                ('actor', models.CharField(max_length=80)),
                ('write_origin', models.CharField(choices=[('tool', 'Agent'), ('background_review', 'Review'), ('consolidation', 'Consolidated'), ('user', 'You'), ('admin', 'Admin'), ('import', 'Import'), ('system', 'System')], max_length=20)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('artifact', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='memories.artifact')),
                ('change_set', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifact_revisions', to='memories.changeset')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifact_revisions', to='memories.owner')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'change_set'], name='artifact_rev_of_change_set')],
                'constraints': [models.UniqueConstraint(fields=('artifact', 'version'), name='artifact_revision_once')],
            },
        ),
        migrations.CreateModel(
            name='Revision',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('version', models.PositiveIntegerField()),
                ('action', models.CharField(choices=[('add', 'Add'), ('update', 'Update'), ('delete', 'Delete'), ('restore', 'Restore'), ('undo', 'Undo'), ('allow', 'Allow'), ('expire', 'Expire')], max_length=8)),
                ('before', models.JSONField(help_text='The memory before; empty for an add.', null=True)),
                ('after', models.JSONField(help_text='The memory after.')),
                ('actor', models.CharField(max_length=80)),
                ('write_origin', models.CharField(choices=[('tool', 'Agent'), ('background_review', 'Review'), ('consolidation', 'Consolidated'), ('user', 'You'), ('admin', 'Admin'), ('import', 'Import'), ('system', 'System')], max_length=20)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('change_set', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='memories.changeset')),
                ('memory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='memories.memory')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='memories.owner')),
                ('evidence_kind', models.CharField(blank=True, choices=[('own_words', 'You said'), ('pasted', 'From text you pasted'), ('tool', 'From a tool or document'), ('assistant', 'The assistant said'), ('recalled', 'From an earlier memory'), ('hand', 'Written by hand'), ('none', 'No quote')], max_length=10)),
                ('evidence_message_id', models.UUIDField(blank=True, null=True)),
                ('evidence_quote', models.TextField(blank=True)),
                ('evidence_run_id', models.UUIDField(blank=True, help_text='The turn in which it was said.', null=True)),
                ('evidence_session_id', models.UUIDField(blank=True, null=True)),
                ('evidence_start', models.PositiveIntegerField(blank=True, help_text='Where the quote stands in the message, in characters.', null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'change_set'], name='revision_of_change_set'), models.Index(fields=['action', '-id'], name='revision_by_action'), models.Index(fields=['write_origin', '-id'], name='revision_by_origin'), models.Index(fields=['actor', '-id'], name='revision_by_actor'), models.Index(fields=['created_at'], name='revision_by_creation'), models.Index(condition=models.Q(('evidence_session_id__isnull', False)), fields=['owner', 'evidence_session_id'], name='revision_evidence')],
                'constraints': [models.UniqueConstraint(fields=('memory', 'version'), name='revision_once_per_version')],
            },
        ),
        migrations.CreateModel(
            name='ThreadRecord',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('session_id', models.UUIDField()),
                ('run_id', models.UUIDField(unique=True)),
                ('cleared_at', models.DateTimeField(blank=True, help_text='Out of recall; purged like a tombstone.', null=True)),
                ('cleared_by', models.UUIDField(blank=True, help_text='The change set of the clear.', null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='thread_records', to='memories.owner')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'session_id', 'id'], name='thread_record_of_session'), models.Index(condition=models.Q(('cleared_at__isnull', False)), fields=['cleared_at'], name='thread_record_cleared')],
            },
        ),
        migrations.CreateModel(
            name='ArtifactUsage',
            fields=[
                ('artifact', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='usage', serialize=False, to='memories.artifact')),
                ('reads', models.PositiveIntegerField(default=0)),
                ('last_read_at', models.DateTimeField(blank=True, null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='artifact_usages', to='memories.owner')),
            ],
        ),
        migrations.CreateModel(
            name='ClearCode',
            fields=[
                ('book', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='clear_code', serialize=False, to='memories.book')),
                ('sha256', models.CharField(max_length=64)),
                ('expires_at', models.DateTimeField()),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='clear_codes', to='memories.owner')),
            ],
        ),
        migrations.CreateModel(
            name='ScanDay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('rule', models.CharField(max_length=64)),
                ('kind', models.CharField(help_text='secret, injection or prompt.', max_length=16)),
                ('number', models.PositiveBigIntegerField(default=0)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('day', 'rule'), name='scan_day_once_per_rule')],
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('actor', models.CharField(blank=True, help_text='Name of the account; empty if it is not known.', max_length=255)),
                ('actor_id', models.CharField(blank=True, help_text='user:ID, key:ID or system.', max_length=80)),
                ('action', models.CharField(max_length=20)),
                ('kind', models.CharField(blank=True, help_text='Kind of object, such as memory or session.', max_length=64)),
                ('object_id', models.CharField(blank=True, max_length=80)),
                ('owner', models.CharField(blank=True, help_text='Name of the person whose object it is.', max_length=255)),
                ('owner_id', models.CharField(blank=True, max_length=40)),
                ('count', models.PositiveIntegerField(default=1, help_text='How many objects.')),
                ('note', models.CharField(blank=True, help_text="One of our own sentences; never somebody's words.", max_length=200)),
                ('address', models.CharField(blank=True, help_text='Network address of the client.', max_length=64)),
                ('request_id', models.CharField(blank=True, max_length=64)),
            ],
            options={
                'verbose_name_plural': 'audit entries',
                'indexes': [models.Index(fields=['at'], name='audit_by_time'), models.Index(fields=['actor', '-id'], name='audit_by_actor'), models.Index(fields=['owner', '-id'], name='audit_by_owner'), models.Index(fields=['action', '-id'], name='audit_by_action')],
            },
        ),
        migrations.CreateModel(
            name='Invalidation',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('owner', 'Owner'), ('book', 'Book'), ('session', 'Session'), ('session_ended', 'Session Ended')], max_length=16)),
                ('owner_id', models.UUIDField()),
                ('book_id', models.UUIDField(blank=True, null=True)),
                ('session_id', models.UUIDField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'indexes': [models.Index(fields=['created_at'], name='invalidation_age')],
            },
        ),
        migrations.CreateModel(
            name='ScanRenewal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rules', models.CharField(max_length=64)),
                ('texts', models.CharField(help_text='The model whose rows hold them.', max_length=64)),
                ('reached', models.UUIDField(default=uuid.UUID('00000000-0000-0000-0000-000000000000'), help_text='The last row that was looked at.')),
                ('over', models.BooleanField(default=False)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('rules', 'texts'), name='scan_renewal_once_per_rules')],
            },
        ),
        migrations.CreateModel(
            name='Erasure',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('owner_id', models.UUIDField(null=True)),
                ('scope', models.CharField(choices=[('memories', 'What is remembered, of all books or of one'), ('owner', 'The owner with everything'), ('account', 'The owner and the login')], max_length=8)),
                ('book', models.CharField(blank=True, help_text='Name of the one book; empty: all of them.', max_length=64)),
                ('actor', models.CharField(blank=True, help_text='Name of the account that asked for it.', max_length=255)),
                ('actor_id', models.CharField(blank=True, max_length=80)),
                ('stopped', models.BooleanField(default=False, help_text='Nothing in the background writes of before any more.')),
                ('erased', models.JSONField(default=dict, help_text='How many rows of what are gone.')),
                ('leased_until', models.DateTimeField(default=memories.models.erasures.lease_end, help_text='Until then a process is at it.')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('finished_at__isnull', True)), fields=['leased_until'], name='erasure_open'), models.Index(fields=['finished_at'], name='erasure_age')],
            },
        ),
        migrations.CreateModel(
            name='MemoryVector',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.CharField(max_length=200)),
                ('content_key', models.CharField(help_text='Hash of the content it was made of.', max_length=64)),
                ('values', models.BinaryField(help_text='16-bit floats, little endian.')),
                ('book', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memory_vectors', to='memories.book')),
                ('memory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='vectors', to='memories.memory')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memory_vectors', to='memories.owner')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'book'], name='vectors_of_book'), models.Index(fields=['owner', 'model', 'content_key'], name='vectors_of_text')],
                'constraints': [models.UniqueConstraint(fields=('memory', 'model'), name='one_vector_by_model')],
            },
        ),
        migrations.RunPython(lambda apps, editor: triggers_create(editor), lambda apps, editor: triggers_drop(editor)),
    ]

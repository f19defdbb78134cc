"""What a new database gets instead of the migrations that it replaces: each of them would have Django render its models
anew. A database that has only some of those goes on with them."""

import django.db.models.deletion
import django.utils.timezone
import gateway.attachments.references
import memories.ids
import uuid
from django.conf import settings
from django.db import migrations, models

from gateway.sessions.message_index import index_create, index_drop


class Migration(migrations.Migration):

    replaces = [
        ('gateway', '0001_initial'),
        ('gateway', '0002_run_holder'),
        ('gateway', '0003_run_injected'),
        ('gateway', '0004_history_hash'),
        ('gateway', '0005_message_kept'),
        ('gateway', '0006_learned_change'),
        ('gateway', '0007_key_expires'),
        ('gateway', '0008_run_responses'),
        ('gateway', '0009_usage_and_webhooks'),
        ('gateway', '0010_connected_apps'),
        ('gateway', '0011_finding'),
        ('gateway', '0012_people'),
        ('gateway', '0013_branches'),
        ('gateway', '0014_tags'),
        ('gateway', '0015_key_books'),
        ('gateway', '0016_message_parts_encoder'),
        ('gateway', '0017_attachments'),
        ('gateway', '0018_awaiting_of_session'),
    ]

    initial = True

    dependencies = [
        ('memories', '0014_memory_due'),
        ('sessions', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        # The last, not the first: with our models there, each of the library's would render them again.
        ('oauth2_provider', '0022_refreshtoken_token_family_index'),
    ]

    operations = [
        migrations.CreateModel(
            name='Agent',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.SlugField(max_length=64, unique=True)),
                ('book', models.CharField(default='main', help_text='Agents that name the same book share memories.', max_length=64)),
                ('settings', models.JSONField(default=dict)),
                ('version', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='Configuration',
            fields=[
                ('section', models.CharField(max_length=32, primary_key=True, serialize=False)),
                ('value', models.JSONField(default=dict)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='Worker',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('host', models.CharField(max_length=255)),
                ('pid', models.PositiveIntegerField()),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('beat_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80)),
                ('prefix', models.CharField(help_text='The first characters, to tell keys apart.', max_length=12)),
                ('sha256', models.CharField(editable=False, max_length=64, unique=True)),
                ('read_only', models.BooleanField(default=False, help_text='May read, but not write or chat.')),
                ('trusted', models.BooleanField(default=False, help_text='May name end users with X-Daybook-User.')),
                ('agents', models.JSONField(blank=True, default=list, help_text='Names of the agents it may use; empty: all.')),
                ('requests_per_minute', models.PositiveIntegerField(default=0, help_text='0 = no limit.')),
                ('end_user_seen', models.CharField(blank=True, editable=False, help_text="Hash of an end user's id.", max_length=64)),
                ('end_users_mixed_at', models.DateTimeField(blank=True, editable=False, help_text='When an untrusted key was first seen with two end users.', null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to='memories.owner')),
                ('expires_at', models.DateTimeField(blank=True, help_text='From then on it is refused; empty: never.', null=True)),
                ('previous_sha256', models.CharField(blank=True, db_index=True, editable=False, max_length=64)),
                ('previous_until', models.DateTimeField(blank=True, editable=False, help_text='How long what the key was before its rotation is taken.', null=True)),
                ('money_per_day', models.FloatField(blank=True, default=0, help_text='In the currency of the prices, a UTC day; 0 = no limit.')),
                ('streams_at_once', models.PositiveIntegerField(blank=True, default=0, help_text='Answers under way at once; 0 = no limit.')),
                ('tokens_per_day', models.PositiveBigIntegerField(blank=True, default=0, help_text='Of a UTC day; 0 = no limit.')),
                ('client', models.ForeignKey(blank=True, editable=False, help_text='The app that is connected; empty for a key that a person or program holds.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='connections', to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL)),
                ('books', models.JSONField(blank=True, default=list, help_text='Names of the books it may use; empty: those of its agents, or all.')),
            ],
            options={
                'verbose_name': 'API key',
                'verbose_name_plural': 'API keys',
                'constraints': [models.UniqueConstraint(condition=models.Q(('client__isnull', False), ('revoked_at', None)), fields=('owner', 'client'), name='api_key_one_connection')],
            },
        ),
        migrations.CreateModel(
            name='Session',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('title', models.CharField(blank=True, max_length=200)),
                ('state', models.CharField(choices=[('active', 'Active'), ('ended', 'Ended')], default='active', max_length=6)),
                ('temporary', models.BooleanField(default=False)),
                ('external_id', models.CharField(blank=True, max_length=255, null=True)),
                ('parent_id', models.UUIDField(blank=True, help_text='The session it was forked from.', null=True)),
                ('turns', models.PositiveIntegerField(default=0)),
                ('turns_since_memory_review', models.PositiveIntegerField(default=0)),
                ('reviewed_through', models.PositiveIntegerField(default=0, help_text='Number of the last reviewed message.')),
                ('message_seq', models.PositiveIntegerField(default=0, help_text='Number of the newest message.')),
                ('compaction_epoch', models.PositiveIntegerField(default=0, help_text='Grows with every compaction.')),
                ('last_pair', models.CharField(blank=True, help_text='Hash of the latest pair of messages.', max_length=64)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('last_active_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='sessions', to='gateway.agent')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='memories.owner')),
                ('history_hash', models.CharField(blank=True, help_text='What identifies the conversation so far by content.', max_length=64)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
                ('deleted_at', models.DateTimeField(blank=True, editable=False, help_text='It can be restored until the sweep takes it.', null=True)),
                ('pinned_at', models.DateTimeField(blank=True, null=True)),
                ('tags', models.TextField(blank=True, default='', help_text='Each on a line of its own, with a line break before the first one, too.')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', '-last_active_at'], name='session_recent'), models.Index(condition=models.Q(('reviewed_through__lt', models.F('message_seq'))), fields=['agent', 'last_active_at'], name='session_unreviewed'), models.Index(fields=['owner', 'agent', 'last_pair'], name='session_by_last_pair'), models.Index(fields=['owner', 'agent', 'history_hash'], name='session_by_history'), models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['deleted_at'], name='session_deleted'), models.Index(condition=models.Q(('temporary', True)), fields=['last_active_at'], name='session_temporary'), models.Index(condition=models.Q(('pinned_at__isnull', False)), fields=['owner', '-pinned_at'], name='session_pinned'), models.Index(condition=models.Q(('tags', ''), _negated=True), fields=['owner', '-last_active_at'], name='session_tagged')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('deleted_at', None)), fields=('owner', 'external_id'), name='session_external_id_once')],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('turn', models.PositiveIntegerField(help_text='Number of the turn in its session; a regeneration keeps it.')),
                ('state', models.CharField(choices=[('running', 'Running'), ('completed', 'Completed'), ('failed', 'Failed'), ('stopped', 'Stopped'), ('awaiting_client_tools', 'Awaiting Client Tools')], default='running', max_length=24)),
                ('counted', models.BooleanField(default=True, help_text='A regeneration is no new user turn.')),
                ('temporary', models.BooleanField(default=False, help_text='Read nothing of memory, and leaves nothing in it.')),
                ('superseded', models.BooleanField(default=False, help_text='Not on the branch that is shown, or closed too late.')),
                ('lease_token', models.UUIDField(default=memories.ids.uuid7, null=True)),
                ('lease_expires_at', models.DateTimeField(null=True)),
                ('stop_requested', models.BooleanField(default=False)),
                ('user_key', models.CharField(blank=True, help_text='Hash of the canonical user message.', max_length=64)),
                ('idempotency_key', models.CharField(blank=True, max_length=255)),
                ('request_id', models.CharField(max_length=64)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('text', models.TextField(blank=True, help_text='What was said so far, flushed while it is said.')),
                ('usage', models.JSONField(default=dict)),
                ('recalled', models.JSONField(default=list)),
                ('usage_counted', models.BooleanField(default=False, help_text='What it recalled was added to the usage counters.')),
                ('trace', models.JSONField(default=dict, help_text='What recall and the model steps did, without content.')),
                ('error', models.JSONField(blank=True, null=True)),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='memories.owner')),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='gateway.session')),
                ('holder', models.UUIDField(help_text='The process that executes it.', null=True)),
                ('injected', models.JSONField(blank=True, editable=False, help_text='What it was given from memory, while it waits for its client.', null=True)),
                ('history_hash_before', models.CharField(blank=True, max_length=64)),
                ('history_hash_after', models.CharField(blank=True, max_length=64)),
                ('responses', models.JSONField(blank=True, editable=False, help_text='What /v1/responses keeps of its requests, by part of the run.', null=True)),
                ('follows', models.UUIDField(blank=True, help_text='The run before it on its branch; none: the first.', null=True)),
                ('reasoning', models.TextField(blank=True, help_text='What the model told of its thinking, as far as it is kept.')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'session', '-id'], name='run_of_session'), models.Index(condition=models.Q(('state', 'running')), fields=['lease_expires_at'], name='run_open_lease'), models.Index(condition=models.Q(('state', 'awaiting_client_tools')), fields=['lease_expires_at'], name='run_awaiting_lease'), models.Index(condition=models.Q(('state', 'completed'), ('usage_counted', False)), fields=['id'], name='run_usage_uncounted'), models.Index(fields=['owner', 'history_hash_before', 'user_key', '-id'], name='run_by_history_before'), models.Index(condition=models.Q(('superseded', True)), fields=['session', 'follows'], name='run_other_versions'), models.Index(condition=models.Q(('state', 'awaiting_client_tools')), fields=['session'], name='run_awaiting_of_session')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'running')), fields=('session',), name='run_one_open_per_session')],
            },
        ),
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('seq', models.PositiveIntegerField()),
                ('role', models.CharField(choices=[('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool')], max_length=9)),
                ('kind', models.CharField(choices=[('chat', 'Chat'), ('command', 'Command'), ('history', 'History')], default='chat', max_length=7)),
                ('text', models.TextField(blank=True)),
                ('parts', models.JSONField(blank=True, decoder=gateway.attachments.references.PartsDecoder, encoder=gateway.attachments.references.PartsEncoder, help_text='Content parts, where the message is more than text; what is attached is a reference to its bytes.', null=True)),
                ('tool_calls', models.JSONField(blank=True, null=True)),
                ('tool_call_id', models.CharField(blank=True, max_length=128)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='memories.owner')),
                ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='gateway.run')),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='gateway.session')),
                ('kept', models.JSONField(blank=True, editable=False, help_text='What its server wants to be sent again: reasoning, ids.', null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'session', 'seq'], name='message_of_session')],
                'constraints': [models.UniqueConstraint(fields=('session', 'seq'), name='message_seq_once_per_session')],
            },
        ),
        migrations.CreateModel(
            name='Compaction',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('up_to', models.PositiveIntegerField()),
                ('summary', models.TextField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='compactions', to='memories.owner')),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='compactions', to='gateway.session')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'session', '-id'], name='compaction_of_session')],
            },
        ),
        migrations.CreateModel(
            name='LearnedChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('upstream', models.CharField(max_length=64)),
                ('model', models.CharField(max_length=300)),
                ('kind', models.CharField(help_text='As in gateway.upstream.changes, like the next three.', max_length=6)),
                ('parameter', models.CharField(max_length=200)),
                ('value', models.CharField(default='null', help_text='As JSON.', max_length=100)),
                ('condition', models.CharField(blank=True, max_length=5)),
                ('words', models.CharField(help_text='What the server said.', max_length=400)),
                ('learned_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('upstream', 'model', 'kind', 'parameter', 'value', 'condition'), name='learned_change_once')],
            },
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('url', models.CharField(max_length=2000)),
                ('kinds', models.JSONField(default=list, help_text='The kinds of notifications that are sent.')),
                ('secret_sha256', models.CharField(editable=False, help_text='Tells which signing key made it.', max_length=64)),
                ('delivered_seq', models.PositiveBigIntegerField(default=0, help_text='The last notification that is dealt with.')),
                ('failures', models.PositiveIntegerField(default=0, help_text='Attempts of the next notification that failed.')),
                ('next_attempt_at', models.DateTimeField(blank=True, null=True)),
                ('attempted_at', models.DateTimeField(blank=True, null=True)),
                ('delivered_at', models.DateTimeField(blank=True, null=True)),
                ('failed_at', models.DateTimeField(blank=True, null=True)),
                ('failure', models.CharField(blank=True, help_text='How the last failed attempt ended.', max_length=200)),
                ('disabled_at', models.DateTimeField(blank=True, null=True)),
                ('note', models.CharField(blank=True, help_text='Why it is disabled.', max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='memories.owner')),
            ],
        ),
        migrations.CreateModel(
            name='UsageDay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('key_id', models.UUIDField(default=uuid.UUID('00000000-0000-0000-0000-000000000000'), help_text='The key that asked; all zeros: a login.')),
                ('agent', models.CharField(blank=True, help_text='Empty: a model was named without an agent.', max_length=64)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('turns', models.PositiveBigIntegerField(default=0, help_text='User turns that were answered.')),
                ('requests', models.PositiveBigIntegerField(default=0, help_text='Model steps.')),
                ('unpriced_requests', models.PositiveBigIntegerField(default=0, help_text='Those whose model had no price.')),
                ('input_tokens', models.PositiveBigIntegerField(default=0)),
                ('output_tokens', models.PositiveBigIntegerField(default=0)),
                ('cached_tokens', models.PositiveBigIntegerField(default=0, help_text='Those of the input that a cache knew.')),
                ('cost', models.FloatField(default=0, help_text='In the currency of the prices, by the prices of that moment.')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='usage_days', to='memories.owner')),
            ],
            options={
                'indexes': [models.Index(fields=['owner', 'day'], name='usage_of_owner')],
                'constraints': [models.UniqueConstraint(fields=('key_id', 'day', 'owner', 'agent', 'model'), name='usage_day_once')],
                'verbose_name': 'usage of a day',
                'verbose_name_plural': 'usage',
            },
        ),
        migrations.CreateModel(
            name='ConnectedApp',
            fields=[
            ],
            options={
                'verbose_name': 'connected app',
                'proxy': True,
                'indexes': [],
                'constraints': [],
            },
            bases=('gateway.apikey',),
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('sha256', models.CharField(editable=False, max_length=64, unique=True)),
                ('email', models.EmailField(blank=True, help_text='Becomes the address of the account; empty: none.', max_length=254)),
                ('role', models.CharField(default='user', max_length=16)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('mailed_at', models.DateTimeField(editable=False, null=True)),
                ('accepted_at', models.DateTimeField(editable=False, null=True)),
                ('revoked_at', models.DateTimeField(editable=False, null=True)),
                ('invited_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('user', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Login',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('device', models.CharField(blank=True, max_length=80)),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('seen_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='login', to='sessions.session')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='logins', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Identity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('issuer', models.CharField(max_length=255)),
                ('subject', models.CharField(max_length=255)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='identities', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'identities',
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='identity_once')],
            },
        ),
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('kind', models.CharField(max_length=32, primary_key=True, serialize=False)),
                ('told_at', models.DateTimeField()),
                ('number', models.PositiveBigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='Attachment',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('owner_id', models.UUIDField()),
                ('sha256', models.CharField(max_length=64)),
                ('size', models.PositiveBigIntegerField(help_text='Bytes.')),
                ('media_type', models.CharField(help_text='By the bytes that it begins with.', max_length=100)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('deleting_at', models.DateTimeField(blank=True, help_text='When its deletion was begun last; from then on nothing may use it.', null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('deleting_at__isnull', False)), fields=['deleting_at'], name='attachment_being_deleted')],
                'constraints': [models.UniqueConstraint(fields=('owner_id', 'sha256'), name='attachment_once_per_owner')],
            },
        ),
        migrations.CreateModel(
            name='AttachmentUse',
            fields=[
                ('id', models.UUIDField(default=memories.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('expires_at', models.DateTimeField()),
                ('attachment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uses', to='gateway.attachment')),
                ('session', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='attachment_uses', to='gateway.session')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('session__isnull', True)), fields=['expires_at'], name='attachment_use_without')],
            },
        ),
        migrations.RunPython(lambda apps, editor: index_create(editor), lambda apps, editor: index_drop(editor)),
    ]

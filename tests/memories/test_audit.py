"""The audit log: append-only in code and database, without content, exportable, and readable with permission only"""

import asyncio
import json
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories import selectors
from memories.api import export
from memories.audit import log
from memories.audit.log import NOBODY, SYSTEM, Action, Actor, audit_entry, audit_purge, audit_record, audit_sentence
from memories.audit.triggers import create_statements
from memories.database.access import in_thread
from memories.models import AppendOnlyError, AuditEntry, Owner
from tests.admin_rows import book_make, memory_make, staff_client
from tests.conftest import Api
from tests.factories import key_make, owner_make

pytestmark = pytest.mark.django_db
BOB = Actor("bob", "user:1")


@pytest.fixture
def triggers(db: None) -> None:
    """Create the migration's triggers, which the test database lacks, until the test's transaction is rolled back."""
    with connection.cursor() as cursor:
        for statement in create_statements(connection.vendor):
            cursor.execute(statement)


@pytest.mark.parametrize(
    "statement",
    ["UPDATE memories_auditentry SET actor = 'nobody'", "DELETE FROM memories_auditentry"],
)
def test_the_database_refuses_to_change_or_delete_entries(triggers: None, statement: str) -> None:
    audit_record(Action.VIEW, actor=BOB, kind="memory")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert AuditEntry.objects.get().actor == "bob"


def test_entries_survive_the_deletion_of_their_account(triggers: None) -> None:
    bob = User.objects.create_user("bob", is_staff=True)
    audit_record(Action.VIEW, actor=Actor("bob", f"user:{bob.pk}"), kind="memory")
    bob.delete()
    assert AuditEntry.objects.get().actor == "bob"


def test_the_orm_refuses_to_change_or_delete_entries() -> None:
    entry = audit_record(Action.VIEW, actor=BOB)
    entry.actor = "alice"
    for change in (
        entry.save,
        entry.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(actor="alice"),
        lambda: AuditEntry.objects.bulk_update([entry], ["actor"]),
    ):
        with pytest.raises(AppendOnlyError), transaction.atomic():
            change()
    assert AuditEntry.objects.get().actor == "bob"


@pytest.mark.usefixtures("whole_deletions")
def test_entries_of_a_deleted_auditor_remain() -> None:
    memory = memory_make("Likes tea.")
    client = staff_client(auditor=True)
    bob = User.objects.get(username="bob")
    bob.set_password("bob knows it")
    bob.save()
    client.force_login(bob)
    client.get(f"/admin/memories/memory/{memory.pk}/change/")
    answer = client.post("/account/delete/", {"line": "delete everything", "password": "bob knows it"})
    assert (answer.status_code, User.objects.filter(username="bob").exists()) == (200, False)
    entry = AuditEntry.objects.get(action="view")
    assert (entry.actor, entry.owner, entry.object_id) == ("bob", "alice", str(memory.pk))
    assert AuditEntry.objects.get(action="forget").owner == "bob"


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"action": Action.VIEW, "actor": BOB, "kind": "memory", "object_id": 7}, "bob opened memory 7 of alice."),
        ({"action": Action.LIST, "actor": BOB, "kind": "memory", "count": 3}, "bob listed 3 × memory of alice."),
        ({"action": Action.SIGN_IN, "actor": BOB, "owner": None}, "bob signed in."),
        ({"action": Action.SIGN_IN_FAILED, "actor": NOBODY, "owner": None}, "Somebody failed to sign in."),
        ({"action": Action.SIGN_IN_FAILED, "actor": NOBODY, "kind": "user", "object_id": 3},
         "Somebody failed to sign in as alice (user 3)."),
        ({"action": Action.SIGN_IN_REFUSED, "actor": NOBODY, "kind": "user", "object_id": 3},
         "Somebody was locked out after too many failed sign-ins as alice (user 3)."),
        ({"action": Action.PASSWORD_CHANGE, "actor": BOB, "kind": "user", "object_id": 3},
         "bob changed the password of alice (user 3)."),
        ({"action": Action.FORGET, "actor": SYSTEM, "kind": "memory", "note": "By hand."},
         "system erased memory of alice. By hand."),
    ],
)  # fmt: skip
def test_entries_are_described_in_sentences(alice: Owner, entry: dict[str, Any], sentence: str) -> None:
    assert audit_sentence(audit_entry(**{"owner": alice, **entry})) == sentence


# -- the API


async def auditor_api(*, staff: bool = True, permitted: bool = True, **key: Any) -> Api:
    def make() -> str:
        owner = owner_make("bob", is_staff=staff)
        if permitted:
            assert owner.user is not None
            owner.user.user_permissions.add(Permission.objects.get(codename="view_auditentry"))
        return key_make(owner, **key)[1]

    return Api(await in_thread(make))


async def test_staff_with_permission_read_the_log_newest_first() -> None:
    api = await auditor_api()
    for number in range(3):
        await in_thread(audit_record, Action.VIEW, actor=BOB, kind="memory", object_id=number)
    status, page = await api.get("/api/audit?action=view&limit=2")
    assert (status, page["object"], page["has_more"]) == (200, "list", True)
    assert [entry["object_id"] for entry in page["data"]] == ["2", "1"]
    _, rest = await api.get(f"/api/audit?action=view&after={page['last_id']}")
    assert [entry["object_id"] for entry in rest["data"]] == ["0"]
    assert rest["data"][0]["actor"] == "bob"


@pytest.mark.parametrize("accepted", ["application/x-ndjson", "Application/X-NDJSON; q=0.9"])
async def test_the_log_is_exported_as_json_lines_and_the_export_is_recorded(accepted: str) -> None:
    api = await auditor_api()
    await in_thread(audit_record, Action.VIEW, actor=BOB, kind="memory")
    response = await api.raw("GET", "/api/audit", accept=accepted)
    assert response.headers["Content-Type"] == "application/x-ndjson"
    lines = [json.loads(line) async for chunk in response.streaming_content for line in chunk.splitlines()]
    assert [line["action"] for line in lines] == ["key_create", "view", "export"]


async def test_reading_a_page_of_the_log_is_recorded() -> None:
    api = await auditor_api()
    await in_thread(audit_record, Action.VIEW, actor=BOB, kind="memory")
    await api.get("/api/audit?action=view")
    entry = await in_thread(AuditEntry.objects.get, action="list")
    assert (entry.actor, entry.kind, entry.count) == ("bob", "audit entry", 1)
    assert entry.actor_id.startswith("key:")


async def test_an_export_reads_the_log_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    api = await auditor_api()
    for module in (export, selectors):
        monkeypatch.setattr(module, "PAGE", 2)
    for _ in range(5):
        await in_thread(audit_record, Action.VIEW, actor=BOB, kind="memory")
    response = await api.raw("GET", "/api/audit?action=view", accept="application/x-ndjson")
    chunks = [chunk async for chunk in response.streaming_content]
    assert [len(chunk.splitlines()) for chunk in chunks] == [2, 2, 1]


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "after=yesterday", f"actor={'a' * 256}"])
async def test_invalid_query_parameters_are_refused(query: str) -> None:
    status, _ = await (await auditor_api()).get(f"/api/audit?{query}")
    assert status == 400


@pytest.mark.parametrize("who", [{"staff": False}, {"permitted": False}, {"staff": False, "permitted": False}])
async def test_the_log_needs_staff_status_and_permission(who: dict[str, bool]) -> None:
    status, answer = await (await auditor_api(**who)).get("/api/audit")
    assert (status, answer["error"]["code"]) == (403, "forbidden")


async def test_a_limited_key_cannot_read_the_log(agent: Any) -> None:
    status, _ = await (await auditor_api(agents=["assistant"])).get("/api/audit")
    assert status == 403


# -- recorded actions


async def test_exports_forgetting_and_new_keys_are_recorded(alice: Owner, alice_api: Api) -> None:
    await alice_api.get("/api/memories")
    await alice_api.raw("GET", "/api/export")
    await alice_api.call("DELETE", "/api/account/memories")
    entries = await in_thread(lambda: list(AuditEntry.objects.order_by("pk").values_list("action", "actor", "owner")))
    assert entries == [
        ("key_create", "system", "alice"),
        ("export", "alice", "alice"),
        ("forget", "alice", "alice"),
    ]
    assert (await in_thread(AuditEntry.objects.get, action="export")).actor_id.startswith("key:")


def test_a_deactivation_and_a_new_password_are_recorded(alice: Owner) -> None:
    root = staff_client(superuser=True)
    path = f"/admin/auth/user/{alice.user_id}"
    root.post(f"{path}/change/", {"username": "alice", "date_joined_0": "2026-01-01", "date_joined_1": "00:00"})
    new = "another long one"
    root.post(f"{path}/password/", {"password1": new, "password2": new, "usable_password": "true"})
    actions = set(AuditEntry.objects.filter(actor="bob").values_list("action", flat=True))
    assert {"user_deactivate", "password_change"} <= actions


def test_the_admin_shows_and_filters_sentences(alice: Owner) -> None:
    audit_record(Action.VIEW, actor=BOB, kind="memory", object_id="7", owner=alice)
    audit_record(Action.SIGN_IN, actor=Actor("charlie", "user:3"))
    root = staff_client(superuser=True)
    page = root.get("/admin/memories/auditentry/?owner=alice&actor=bob&action=view").content.decode()
    assert "bob opened memory 7 of alice." in page
    assert "charlie signed in." not in page


def test_a_list_of_several_people_is_one_line_that_names_the_others_and_hides_nobody() -> None:
    root = staff_client(superuser=True)
    for owner in (owner_make("alice"), owner_make("carol"), dave := owner_make("dave")):
        memory_make("Likes tea.", book=book_make(owner))
    memory_make("Likes rum.", book=book_make(dave))
    root.get("/admin/memories/memory/")
    audit_record(Action.CHANGE, actor=BOB, kind="memory", object_id="7")

    def listed(**query: str) -> list[str]:
        found = root.get("/admin/memories/auditentry/", query).context["cl"].result_list
        return [audit_sentence(entry) for entry in found][::-1]

    line = "bob listed 2 × memory of dave. The list also had rows of 2 other people."
    changed, signed_in = "bob changed memory 7.", "bob signed in."
    assert listed() == [signed_in, line, changed]
    assert listed(group="changes") == [changed]
    assert listed(group="access") == [line]
    assert listed(group="sign_in") == [signed_in]
    assert listed(kind="memory", action="list") == [line]
    assert listed(q="7") == [changed]
    assert listed(owner="carol") == ["bob listed 1 × memory of carol. In the same list."]
    entry = AuditEntry.objects.get(owner="carol")
    assert listed(q=entry.request_id)[:2] == [line, "bob listed 1 × memory of carol. In the same list."]
    earlier = audit_entry(Action.LIST, actor=BOB, kind="memory", count=9)  # of a client that repeats its request ids
    earlier.at, earlier.request_id = entry.at - timedelta(hours=1), entry.request_id
    earlier.save()
    page = root.get(f"/admin/memories/auditentry/{entry.pk}/change/").content.decode()
    assert "dave (2), carol (1), alice (1)" in page
    assert "nobody (9)" not in page


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans with statistics")
@pytest.mark.parametrize(
    ("query", "index"),
    [({"q": "7"}, "audit_by_object"), ({"q": "7"}, "audit_by_request"), ({"kind": "memory"}, "audit_by_kind")],
)
def test_ids_and_kinds_are_looked_up_by_an_index(query: dict[str, str], index: str) -> None:
    root = staff_client(superuser=True)
    with CaptureQueriesContext(connection) as captured:
        root.get("/admin/memories/auditentry/", query)
    statements = [each["sql"] for each in captured.captured_queries if "ORDER BY" in each["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statements[-1]}")
        plan = [row[3] for row in cursor.fetchall()]
    assert any(index in step for step in plan), plan


def test_the_admins_export_is_streamed_in_pages_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (export, selectors):
        monkeypatch.setattr(module, "PAGE", 2)
    audit_record(Action.SIGN_IN, actor=Actor("charlie", "user:3"))
    audit_record(Action.VIEW, actor=Actor("charlie", "user:3"), kind="memory")
    response: Any = staff_client(superuser=True).get("/admin/memories/auditentry/export/")

    async def sent() -> list[bytes]:
        return [chunk async for chunk in response.streaming_content]

    chunks = asyncio.run(sent())
    lines = [json.loads(line) for line in b"".join(chunks).splitlines()]
    assert len(chunks) > 1
    assert [line["action"] for line in lines[:2]] == ["sign_in", "view"]
    assert {"actor": "bob", "action": "export", "note": "The whole log."}.items() <= lines[-1].items()


# -- retention


def old_entry(days: int, action: Action = Action.VIEW) -> AuditEntry:
    entry = audit_entry(action, actor=BOB, kind="memory")
    entry.at = timezone.now() - timedelta(days=days)
    entry.save()
    return entry


def test_a_purge_deletes_old_entries_is_recorded_and_keeps_the_triggers(
    triggers: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(log, "_PURGE_BATCH", 2)
    for _ in range(3):
        old_entry(400)
    recent, former = old_entry(100), old_entry(500, Action.PURGE)
    day = (timezone.now() - timedelta(days=365)).date().isoformat()
    call_command("audit", "purge", "--before", day)
    assert capsys.readouterr().out.startswith(f"3 entries are from before {day}.")
    assert AuditEntry.objects.count() == 5
    call_command("audit", "purge", "--before", day, "--confirm")
    assert "Deleted 3 entries" in capsys.readouterr().out
    purge = AuditEntry.objects.get(action="purge", actor="system")
    assert (purge.kind, purge.count) == ("audit entry", 3)
    assert audit_sentence(purge).startswith("system purged 3 × audit entry. Older than ")
    assert set(AuditEntry.objects.values_list("pk", flat=True)) == {recent.pk, former.pk, purge.pk}
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM memories_auditentry")


def test_a_failed_purge_keeps_entries_and_triggers(triggers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    old_entry(400)
    monkeypatch.setattr(log, "create_statements", lambda vendor: ["CREATE TRIGGER nonsense"])
    with pytest.raises(DatabaseError), transaction.atomic():
        audit_purge(timezone.now() - timedelta(days=365), actor=SYSTEM)
    assert AuditEntry.objects.filter(action="view").count() == 1
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM memories_auditentry")


def test_a_day_that_is_none_is_said_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match="'yesterday' is not a date such as 2026-01-31"):
        call_command("audit", "purge", "--before", "yesterday")


def test_recent_entries_cannot_be_purged() -> None:
    old_entry(29)
    with pytest.raises(CommandError, match="last 30 days are kept"):
        call_command("audit", "purge", "--before", timezone.now().date().isoformat(), "--confirm")
    assert AuditEntry.objects.count() == 1


# -- Django's admin log, and changes in the admin


def test_the_old_admin_log_is_copied_without_row_names(alice: Owner) -> None:
    memory = memory_make("Likes tea.")
    with_row_name = '[{"added": {"object": "Likes tea."}}]'
    for flag, message in ((4, f"Opened; owner {alice.pk}."), (2, with_row_name), (2, "Allowed.")):
        LogEntry.objects.create(
            user_id=alice.user_id,
            object_id=str(memory.pk),
            object_repr="My secret talk",
            action_flag=flag,
            change_message=message,
        )
    migration = import_module("memories.migrations.0006_audit_append_only")
    migration.admin_log_copy(apps, None)
    copied = list(AuditEntry.objects.order_by("pk").values_list("action", "actor", "owner", "note"))
    assert copied == [("view", "alice", "alice", ""), ("change", "alice", "", ""), ("change", "alice", "", "Allowed.")]
    assert not LogEntry.objects.exists()
    assert not any("secret" in str(entry) for entry in AuditEntry.objects.values())


def test_the_log_cannot_be_changed_in_the_admin() -> None:
    entry = audit_record(Action.VIEW, actor=BOB)
    root: Client = staff_client(superuser=True)
    for path in ("add", f"{entry.pk}/delete"):
        assert root.post(f"/admin/memories/auditentry/{path}/", {"post": "yes"}).status_code == 403
    assert root.post(f"/admin/memories/auditentry/{entry.pk}/change/", {"actor": "x"}).status_code == 403
    assert AuditEntry.objects.get(pk=entry.pk).actor == "bob"

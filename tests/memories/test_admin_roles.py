"""/admin/: role × page × action. Every registered page, action on a row, action on a list and further address has a row
here, and who is not named in it gets nothing: `s` superuser, `a` memory auditor, `v` staff that may view everything,
`n` staff without permissions. Ordinary people and those who are not signed in are sent to sign in, everywhere."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models import Model
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.urls import reverse
from pytest_django.plugin import DjangoDbBlocker

from tests.admin_pages import Rows, add_of, delete_of, list_of, page_of, pages, rows_make
from tests.admin_rows import staff_client, user_make
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]
ROLES = {
    "superuser": "s",
    "memory auditor": "a",
    "view-only staff": "v",
    "staff without permissions": "n",
    "ordinary person": "",
    "signed out": "",
}
SIGN_IN, NO, YES = "is sent to sign in", "is refused", "gets in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Who opens the list and a row's page, the form for a new row, may save changes, and may delete."""

    look: str
    add: str = ""
    change: str = ""
    delete: str = ""


PAGES = {
    "auth.group": Who(look="sv", add="s", change="s", delete="s"),
    "auth.user": Who(look="sv", add="s", change="s", delete="s"),
    "gateway.agent": Who(look="sv", add="s", change="s"),
    "gateway.apikey": Who(look="sv", add="s"),
    "gateway.connectedapp": Who(look="sv"),
    "gateway.configuration": Who(look="sv", change="s"),
    "gateway.invitation": Who(look="sv", add="s"),
    "gateway.learnedchange": Who(look="sv", delete="s"),
    "gateway.run": Who(look="sv"),
    "gateway.session": Who(look="sv"),
    "gateway.usageday": Who(look="sv"),
    "gateway.webhook": Who(look="sv"),
    "gateway.worker": Who(look="sv"),
    "memories.artifact": Who(look="sav", change="sa"),
    "memories.auditentry": Who(look="sv"),
    "memories.book": Who(look="sav"),
    "memories.booklimits": Who(look="sv"),
    "memories.changeset": Who(look="sav"),
    "memories.lease": Who(look="sv"),
    "memories.memory": Who(look="sav", add="s", change="sa"),
    "memories.notification": Who(look="sv"),
    "memories.owner": Who(look="sav"),
    "memories.revision": Who(look="sav"),
    "reviews.consolidationrun": Who(look="sav"),
    "reviews.extraction": Who(look="sav"),
    "reviews.reviewrun": Who(look="sav"),
}
# Buttons of a row's page.
OBJECT_ACTIONS = {
    "gateway.apikey revoke": "s",
    "gateway.connectedapp disconnect": "s",
    "gateway.invitation revoke": "s",
    "gateway.webhook disable": "s",
    "memories.artifact put_back": "sa",
    "memories.artifact remove": "sa",
    "memories.changeset undo": "sa",
    "memories.memory allow": "sa",
    "memories.memory delete": "sa",
    "memories.memory put_back": "sa",
    "memories.memory restore": "sa",
    "reviews.consolidationrun stop": "s",
    "reviews.consolidationrun undo": "sa",
    "reviews.reviewrun again": "sa",
    "reviews.reviewrun cancel": "sa",
    "reviews.reviewrun put_back": "sa",
    "reviews.reviewrun undo": "sa",
}
# Choices of a list.
ACTIONS = {
    "auth.group delete_selected": "s",
    "auth.user delete_selected": "s",
    "auth.user unlock_sign_in": "s",
    "gateway.learnedchange delete_selected": "s",
    "memories.book consolidate_books": "s",
    "memories.memory allow_memories": "sa",
    "memories.memory delete_memories": "sa",
    "memories.memory export_memories": "sav",
    "memories.memory restore_memories": "sa",
    "reviews.reviewrun cancel_reviews": "sa",
    "reviews.reviewrun review_again": "sa",
    "reviews.reviewrun undo_reviews": "sa",
}
# Addresses of a page beyond Django's own: who, and a request that asks for it.
Ask = Callable[[Client, Rows], Any]
ADDRESSES: dict[str, tuple[str, Ask]] = {
    "auth_user_password_change": ("s", lambda c, r: c.get(f"/admin/auth/user/{r['auth.user'].pk}/password/")),
    "gateway_agent_try": ("s", lambda c, r: c.post(reverse("admin:gateway_agent_try", args=[r["gateway.agent"].pk]))),
    "memories_auditentry_export_lines": ("sv", lambda c, r: c.get("/admin/memories/auditentry/export/")),
    "memories_book_consolidate": (
        "s",
        lambda c, r: c.get(reverse("admin:memories_book_consolidate"), {"book": str(r["memories.book"].pk)}),
    ),
    "reviews_consolidationrun_progress": (
        "sav",
        lambda c, r: c.get(reverse("admin:reviews_consolidationrun_progress", args=[r["reviews.consolidationrun"].pk])),
    ),
    "reviews_reviewrun_decide": (
        "sa",
        lambda c, r: c.post(
            reverse("admin:reviews_reviewrun_decide", args=[r["reviews.reviewrun"].pk]), {"verb": "reject"}
        ),
    ),
    "reviews_reviewrun_now": (
        "sa",
        lambda c, r: c.post(reverse("admin:reviews_reviewrun_now", args=[r["gateway.session"].pk])),
    ),
}
_DJANGOS_OWN = ("changelist", "add", "history", "delete", "change")


@pytest.fixture(scope="module")
def all_rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Rows]:
    with shared_rows(django_db_blocker, rows_make) as made:
        yield made


@pytest.fixture
def rows(all_rows: Rows, db: None) -> Rows:
    return all_rows


@pytest.fixture(params=ROLES)
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(role: str, rows: Rows) -> Client:
    if role == "signed out":
        return Client()
    if role == "ordinary person":
        client = Client()
        client.force_login(user_make("charlie"))
        return client
    client = staff_client(superuser=role == "superuser", auditor=role == "memory auditor")
    if role == "view-only staff":
        User.objects.get(username="bob").user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    return client


def outcome(answer: Any) -> str:
    """What an answer comes to: an address that leads elsewhere in the admin has let the role in."""
    if answer.status_code == 302 and answer.headers["Location"].startswith("/admin/login/"):
        return SIGN_IN
    assert answer.status_code in {200, 302, 403}, answer.status_code
    return NO if answer.status_code == 403 else YES


def expected(role: str, who: str) -> str:
    if not ROLES[role]:
        return SIGN_IN
    return YES if ROLES[role] in who else NO


def all_addresses() -> set[str]:
    """Names of the addresses that pages have beside Django's own and the object actions'."""
    found = set()
    for name, page in pages().items():
        base = name.replace(".", "_")
        own = {f"{base}_{part}" for part in (*_DJANGOS_OWN, "object_action")}
        found |= {url.name for url in page.get_urls() if url.name and url.name not in own}
    return found


def all_actions() -> set[str]:
    """`app.model action` as a superuser is offered them."""
    request: HttpRequest = RequestFactory().get("/admin/")
    request.user = User(is_superuser=True, is_staff=True, is_active=True)
    return {f"{name} {action}" for name, page in pages().items() for action in page.get_actions(request)}


def all_object_actions() -> set[str]:
    return {
        f"{name} {object_action.verb}"
        for name, page in pages().items()
        for object_action in getattr(page, "object_actions", ())
    }


@pytest.mark.parametrize(
    ("kind", "there", "table"),
    [
        ("page", lambda: set(pages()), PAGES),
        ("object_action", all_object_actions, OBJECT_ACTIONS),
        ("action", all_actions, ACTIONS),
        ("address", all_addresses, ADDRESSES),
    ],
    ids=["pages", "object_actions", "actions", "addresses"],
)
def test_everything_in_the_admin_has_a_row_in_the_matrix(
    kind: str, there: Callable[[], set[str]], table: dict[str, Any]
) -> None:
    missing, gone = sorted(there() - set(table)), sorted(set(table) - there())
    assert not missing, f"Say in {__name__} who may use each {kind}: {', '.join(missing)}"
    assert not gone, f"{__name__} speaks of what the admin does not have: {', '.join(gone)}"


def test_each_role_opens_its_pages_and_is_offered_saving_where_it_may_change(
    role: str, client: Client, rows: Rows
) -> None:
    def of(path: str) -> str:
        answer = client.get(path)
        # The list of the settings leads to their one form, which decides.
        if answer.headers.get("Location", "").startswith("/admin/gateway/configuration/"):
            answer = client.get(answer.headers["Location"])
        saving = ", may save" if 'name="_save"' in answer.content.decode() else ""
        return outcome(answer) + saving

    def page_for(who: Who) -> str:
        return expected(role, who.look) + (", may save" if expected(role, who.change) == YES else "")

    def form_for(who: Who) -> str:
        opened = expected(role, who.add)
        return f"{opened}, may save" if opened == YES else opened

    seen = {
        name: (of(list_of(name)), of(page_of(name, row)), of(add_of(name)), of(delete_of(name, row)))
        for name, row in rows.items()
    }
    # The list of the settings is their form.
    lists = {
        name: page_for(who) if name == "gateway.configuration" else expected(role, who.look)
        for name, who in PAGES.items()
    }
    assert seen == {
        name: (lists[name], page_for(who), form_for(who), expected(role, who.delete)) for name, who in PAGES.items()
    }


def test_a_change_by_somebody_who_may_not_is_refused(role: str, client: Client, rows: Rows) -> None:
    refused = [name for name, who in PAGES.items() if expected(role, who.change) != YES]
    before = {name: stored(rows[name]) for name in refused}
    answers = {name: outcome(client.post(page_of(name, rows[name]), {"name": "changed"})) for name in refused}
    assert answers == dict.fromkeys(refused, NO if ROLES[role] else SIGN_IN)
    assert {name: stored(rows[name]) for name in refused} == before


def test_each_role_does_its_object_actions_and_no_others(role: str, client: Client, rows: Rows) -> None:
    seen = {}
    for object_action, who in OBJECT_ACTIONS.items():
        name, verb = object_action.split()
        before = stored(rows[name])
        answer = client.post(
            object_action_of(name, rows), {"verb": verb, "revision": str(rows["memories.revision"].pk)}
        )
        # Who may put something back is asked before what: this revision is that of a memory.
        found_nothing = answer.status_code == 404 and verb == "put_back"
        seen[object_action] = YES if found_nothing else outcome(answer)
        if expected(role, who) != YES:
            assert stored(rows[name]) == before, object_action
    assert seen == {object_action: expected(role, who) for object_action, who in OBJECT_ACTIONS.items()}


def test_each_role_is_offered_its_actions_and_no_others(role: str, client: Client, rows: Rows) -> None:
    lists = {name: client.get(list_of(name)).content.decode() for name in {key.split()[0] for key in ACTIONS}}
    offered = {key: f'value="{key.split()[1]}"' in lists[key.split()[0]] for key in ACTIONS}
    assert offered == {key: expected(role, who) == YES for key, who in ACTIONS.items()}


def test_an_action_that_a_role_is_not_offered_does_nothing(role: str, client: Client, rows: Rows) -> None:
    for key in [key for key, who in ACTIONS.items() if expected(role, who) != YES]:
        name, verb = key.split()
        before = stored(rows[name])
        answer = client.post(list_of(name), {"action": verb, "_selected_action": [str(rows[name].pk)], "post": "yes"})
        assert answer.headers.get("Content-Type") != "application/x-ndjson", key
        assert stored(rows[name]) == before, key


def test_each_role_reaches_its_addresses_and_no_others(role: str, client: Client, rows: Rows) -> None:
    seen = {name: outcome(ask(client, rows)) for name, (_, ask) in ADDRESSES.items()}
    assert seen == {name: expected(role, who) for name, (who, _) in ADDRESSES.items()}


def test_no_object_action_is_done_by_following_a_link(rows: Rows) -> None:
    root = staff_client(superuser=True)
    for object_action in OBJECT_ACTIONS:
        name, verb = object_action.split()
        assert root.get(object_action_of(name, rows), {"verb": verb}).status_code == 405, object_action


def test_the_first_page_is_for_staff(role: str, client: Client) -> None:
    assert outcome(client.get("/admin/")) == expected(role, "savn")


def stored(row: Model) -> Any:
    """The row as it stands in the database; None when it is gone."""
    return type(row)._default_manager.filter(pk=row.pk).values().first()


def object_action_of(name: str, rows: Rows) -> str:
    """Address that the object actions of a row are posted to."""
    return reverse(f"admin:{name.replace('.', '_')}_object_action", args=[rows[name].pk])

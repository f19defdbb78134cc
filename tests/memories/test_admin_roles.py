"""/admin/: role × page × action. Every registered page, object action, list action, and extra URL has a row here. Roles
that it does not list are refused: `s` superuser, `a` memory auditor, `v` staff that may view everything, `n` staff
without permissions. Users who are not staff or not signed in are always redirected to the sign-in page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models import Model
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.urls import reverse

from tests.admin_pages import Rows, add_of, delete_of, list_of, page_of, pages
from tests.admin_rows import row_url, staff_client, user_make

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]
ROLES = {
    "superuser": "s",
    "memory auditor": "a",
    "view-only staff": "v",
    "staff without permissions": "n",
    "ordinary person": "",
    "signed out": "",
}
SIGN_IN, NO, YES = "redirected to sign in", "refused", "allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRoles:
    """The roles that may open the list and a row's page, add a row, change one, and delete one."""

    view: str
    add: str = ""
    change: str = ""
    delete: str = ""


PAGES = {
    "auth.group": PageRoles(view="sv", add="s", change="s", delete="s"),
    "auth.user": PageRoles(view="sv", add="s", change="s", delete="s"),
    "gateway.agent": PageRoles(view="sv", add="s", change="s"),
    "gateway.apikey": PageRoles(view="sv", add="s"),
    "gateway.connectedapp": PageRoles(view="sv"),
    "gateway.configuration": PageRoles(view="sv", change="s"),
    "gateway.invitation": PageRoles(view="sv", add="s"),
    "gateway.learnedchange": PageRoles(view="sv", delete="s"),
    "gateway.run": PageRoles(view="sv"),
    "gateway.session": PageRoles(view="sv"),
    "gateway.usageday": PageRoles(view="sv"),
    "gateway.webhook": PageRoles(view="sv"),
    "gateway.worker": PageRoles(view="sv"),
    "memories.artifact": PageRoles(view="sav", change="sa"),
    "memories.auditentry": PageRoles(view="sv"),
    "memories.book": PageRoles(view="sav"),
    "memories.booklimits": PageRoles(view="sv"),
    "memories.changeset": PageRoles(view="sav"),
    "memories.lease": PageRoles(view="sv"),
    "memories.memory": PageRoles(view="sav", add="s", change="sa"),
    "memories.notification": PageRoles(view="sv"),
    "memories.owner": PageRoles(view="sav"),
    "memories.revision": PageRoles(view="sav"),
    "reviews.consolidationrun": PageRoles(view="sav"),
    "reviews.extraction": PageRoles(view="sav"),
    "reviews.reviewrun": PageRoles(view="sav"),
}
# Buttons on a row's page.
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
    "reviews.reviewrun approve": "sa",
    "reviews.reviewrun cancel": "sa",
    "reviews.reviewrun put_back": "sa",
    "reviews.reviewrun reject": "sa",
    "reviews.reviewrun undo": "sa",
}
# Actions of a list.
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
    "reviews.reviewrun approve_reviews": "sa",
    "reviews.reviewrun cancel_reviews": "sa",
    "reviews.reviewrun reject_reviews": "sa",
    "reviews.reviewrun review_again": "sa",
    "reviews.reviewrun undo_reviews": "sa",
}
# URLs of a page beyond Django's own: the roles that may use it, and a function that sends a request.
SendRequest = Callable[[Client, Rows], Any]
EXTRA_URLS: dict[str, tuple[str, SendRequest]] = {
    "auth_user_password_change": ("s", lambda c, r: c.get(f"/admin/auth/user/{r['auth.user'].pk}/password/")),
    "gateway_agent_try": ("s", lambda c, r: c.post(row_url(r["gateway.agent"], "try"))),
    "memories_auditentry_export_lines": ("sv", lambda c, r: c.get("/admin/memories/auditentry/export/")),
    "memories_book_consolidate": (
        "s",
        lambda c, r: c.get(reverse("admin:memories_book_consolidate"), {"book": str(r["memories.book"].pk)}),
    ),
    "reviews_consolidationrun_progress": (
        "sav",
        lambda c, r: c.get(reverse("admin:reviews_consolidationrun_progress", args=[r["reviews.consolidationrun"].pk])),
    ),
    "reviews_reviewrun_now": (
        "sa",
        lambda c, r: c.post(reverse("admin:reviews_reviewrun_now", args=[r["gateway.session"].pk])),
    ),
}
_DJANGOS_OWN = ("changelist", "add", "history", "delete", "change")


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
    """Return whether the response let the role in. A redirect within the admin counts as allowed."""
    if answer.status_code == 302 and answer.headers["Location"].startswith("/admin/login/"):
        return SIGN_IN
    assert answer.status_code in {200, 302, 403}, answer.status_code
    return NO if answer.status_code == 403 else YES


def expected(role: str, roles: str) -> str:
    if not ROLES[role]:
        return SIGN_IN
    return YES if ROLES[role] in roles else NO


def all_extra_urls() -> set[str]:
    """Return the names of the pages' URLs, except Django's own and the object actions'."""
    found = set()
    for name, page in pages().items():
        base = name.replace(".", "_")
        own = {f"{base}_{part}" for part in (*_DJANGOS_OWN, "object_action")}
        found |= {url.name for url in page.get_urls() if url.name and url.name not in own}
    return found


def all_actions() -> set[str]:
    """Return every `app.model action` that a superuser is offered."""
    request: HttpRequest = RequestFactory().get("/admin/")
    request.user = User(is_superuser=True, is_staff=True, is_active=True)
    return {f"{name} {action}" for name, page in pages().items() for action in page.get_actions(request)}


def all_object_actions() -> set[str]:
    return {f"{name} {verb}" for name, page in pages().items() for verb in getattr(page, "object_actions", ())}


@pytest.mark.parametrize(
    ("kind", "registered", "table"),
    [
        ("page", lambda: set(pages()), PAGES),
        ("object_action", all_object_actions, OBJECT_ACTIONS),
        ("action", all_actions, ACTIONS),
        ("URL", all_extra_urls, EXTRA_URLS),
    ],
    ids=["pages", "object_actions", "actions", "urls"],
)
def test_the_matrix_covers_the_whole_admin(
    kind: str, registered: Callable[[], set[str]], table: dict[str, Any]
) -> None:
    missing, unknown = sorted(registered() - set(table)), sorted(set(table) - registered())
    assert not missing, f"{__name__} must say which roles may use each {kind}: {', '.join(missing)}"
    assert not unknown, f"{__name__} lists what the admin does not have: {', '.join(unknown)}"


def test_each_role_opens_its_pages_may_save_where_it_may_change_and_is_offered_only_its_actions(
    role: str, client: Client, rows: Rows
) -> None:
    shown: dict[str, str] = {}

    def result_of(path: str) -> str:
        answer = client.get(path)
        shown[path] = answer.content.decode()
        # The settings have no list; its URL redirects to their form.
        if answer.headers.get("Location", "").startswith("/admin/gateway/configuration/"):
            answer = client.get(answer.headers["Location"])
        saving = ", may save" if 'name="_save"' in answer.content.decode() else ""
        return outcome(answer) + saving

    def page_for(roles: PageRoles) -> str:
        return expected(role, roles.view) + (", may save" if expected(role, roles.change) == YES else "")

    def form_for(roles: PageRoles) -> str:
        opened = expected(role, roles.add)
        return f"{opened}, may save" if opened == YES else opened

    seen = {
        name: tuple(map(result_of, (list_of(name), page_of(name, row), add_of(name), delete_of(name, row))))
        for name, row in rows.items()
    }
    lists = {
        name: page_for(roles) if name == "gateway.configuration" else expected(role, roles.view)
        for name, roles in PAGES.items()
    }
    assert seen == {
        name: (lists[name], page_for(roles), form_for(roles), expected(role, roles.delete))
        for name, roles in PAGES.items()
    }
    offered = {key: f'value="{key.split()[1]}"' in shown[list_of(key.split()[0])] for key in ACTIONS}
    assert offered == {key: expected(role, roles) == YES for key, roles in ACTIONS.items()}


def test_a_role_without_change_permission_cannot_save(role: str, client: Client, rows: Rows) -> None:
    refused = [name for name, roles in PAGES.items() if expected(role, roles.change) != YES]
    before = {name: stored(rows[name]) for name in refused}
    answers = {name: outcome(client.post(page_of(name, rows[name]), {"name": "changed"})) for name in refused}
    assert answers == dict.fromkeys(refused, NO if ROLES[role] else SIGN_IN)
    assert {name: stored(rows[name]) for name in refused} == before


def test_each_role_can_use_only_its_object_actions(role: str, client: Client, rows: Rows) -> None:
    seen = {}
    for object_action, roles in OBJECT_ACTIONS.items():
        name, verb = object_action.split()
        before = stored(rows[name])
        answer = client.post(
            object_action_of(name, rows), {"verb": verb, "revision": str(rows["memories.revision"].pk)}
        )
        # The permission is checked before the revision, which belongs to a memory, is looked up.
        found_nothing = answer.status_code == 404 and verb == "put_back"
        seen[object_action] = YES if found_nothing else outcome(answer)
        if expected(role, roles) != YES:
            assert stored(rows[name]) == before, object_action
    assert seen == {object_action: expected(role, roles) for object_action, roles in OBJECT_ACTIONS.items()}


def test_an_action_that_is_not_offered_does_nothing(role: str, client: Client, rows: Rows) -> None:
    for key in [key for key, roles in ACTIONS.items() if expected(role, roles) != YES]:
        name, verb = key.split()
        before = stored(rows[name])
        answer = client.post(list_of(name), {"action": verb, "_selected_action": [str(rows[name].pk)], "post": "yes"})
        assert answer.headers.get("Content-Type") != "application/x-ndjson", key
        assert stored(rows[name]) == before, key


def test_each_role_can_use_only_its_extra_urls(role: str, client: Client, rows: Rows) -> None:
    seen = {name: outcome(send(client, rows)) for name, (_, send) in EXTRA_URLS.items()}
    assert seen == {name: expected(role, roles) for name, (roles, _) in EXTRA_URLS.items()}


def test_object_actions_refuse_get_requests(rows: Rows) -> None:
    root = staff_client(superuser=True)
    for object_action in OBJECT_ACTIONS:
        name, verb = object_action.split()
        assert root.get(object_action_of(name, rows), {"verb": verb}).status_code == 405, object_action


def test_the_admin_index_is_for_staff(role: str, client: Client) -> None:
    assert outcome(client.get("/admin/")) == expected(role, "savn")


def stored(row: Model) -> Any:
    """Return the row's current values in the database, or None if it was deleted."""
    return type(row)._default_manager.filter(pk=row.pk).values().first()


def object_action_of(name: str, rows: Rows) -> str:
    """Return the URL to which the object actions of a row are posted."""
    return reverse(f"admin:{name.replace('.', '_')}_object_action", args=[rows[name].pk])

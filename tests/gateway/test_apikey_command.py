"""manage.py apikey"""

import pytest
from django.core.management import CommandError, call_command

from gateway.keys import key_hash
from gateway.models import Agent, ApiKey
from memories.models import Owner


def create_key(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("apikey", "create", "--user", "alice", "--name", "script", *arguments)
    return capsys.readouterr().out.strip()


def test_create_prints_the_new_key(alice: Owner, capsys: pytest.CaptureFixture[str]) -> None:
    plain = create_key(capsys)
    key = ApiKey.objects.get()
    assert plain.startswith("dbk_")
    assert (key.owner, key.name, key.sha256) == (alice, "script", key_hash(plain))
    assert (key.read_only, key.trusted, key.agents, key.requests_per_minute) == (False, False, [], 0)


def test_create_accepts_limits(alice: Owner, agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    limits = ("--requests-per-minute", "30", "--tokens-per-day", "9000", "--money-per-day", "2.5")
    create_key(capsys, "--read-only", "--trusted", "--agents", "assistant", *limits, "--streams-at-once", "3")
    key = ApiKey.objects.get()
    assert (key.read_only, key.trusted, key.agents, key.requests_per_minute) == (True, True, ["assistant"], 30)
    assert (key.tokens_per_day, key.money_per_day, key.streams_at_once) == (9000, 2.5, 3)
    call_command("apikey", "list")
    listed = capsys.readouterr().out
    for word in ("alice", "script", "valid", "read-only", "trusted", "agents assistant", "30 requests a minute"):
        assert word in listed
    assert key.sha256 not in listed


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("create", "--user", "nobody", "--name", "x"), "There is no user nobody."),
        (("create", "--user", "alice", "--name", " "), "--name"),
        (("create", "--user", "alice", "--name", "x", "--agents", "none"), "There is no agent none."),
        (("create", "--user", "alice", "--name", "x", "--requests-per-minute", "-1"), "--requests-per-minute"),
        (("create", "--user", "alice", "--name", "x", "--money-per-day", "nan"), "--money-per-day"),
        (("create", "--user", "alice", "--name", "x", "--books", ""), "--books names at least one."),
        (("create", "--user", "alice", "--name", "x", "--agents", " ,"), "--agents names at least one."),
        (("create", "--name", "x"), "--user"),
        (("revoke", "dbk_zzzz"), "There is no key dbk_zzzz"),
        (("list", "--user", "nobody"), "There is no user nobody."),
    ],
)
def test_errors_are_reported_in_one_line(alice: Owner, arguments: tuple[str, ...], error: str) -> None:
    with pytest.raises(CommandError) as raised:
        call_command("apikey", *arguments)
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not ApiKey.objects.exists()


def test_a_book_with_a_comma_in_its_name_is_in_quotation_marks(
    alice: Owner, capsys: pytest.CaptureFixture[str]
) -> None:
    create_key(capsys, "--books", 'main, "Berlin, 2026",')
    assert ApiKey.objects.get().books == ["main", "Berlin, 2026"]


@pytest.mark.parametrize("by", ["id", "prefix"])
def test_revoke_accepts_an_id_or_a_prefix(alice: Owner, capsys: pytest.CaptureFixture[str], by: str) -> None:
    create_key(capsys)
    key = ApiKey.objects.get()
    call_command("apikey", "revoke", str(key.pk) if by == "id" else key.prefix)
    key.refresh_from_db()
    assert key.revoked_at
    call_command("apikey", "list")
    assert "revoked" in capsys.readouterr().out
    with pytest.raises(CommandError, match="already"):
        call_command("apikey", "revoke", str(key.pk))


def test_an_ambiguous_prefix_is_refused(alice: Owner, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        create_key(capsys)
    ApiKey.objects.update(prefix="dbk_same")
    with pytest.raises(CommandError, match="give the id"):
        call_command("apikey", "revoke", "dbk_same")

"""A guessable signing key is refused if several machines share it."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from config.environment import ConfigurationError, Environment
from config.secret_key import secret_key

STRONG = "pZ3-kQ9_vT7xWc2LmN8rYb5HsJ4dGf6A"
SCALE = {"database_url": "postgres://daybook@127.0.0.1/daybook"}


def environment(key: str, *, fallbacks: str = "", **fields: str) -> Environment:
    return Environment(secret_key=SecretStr(key), secret_key_fallbacks=fallbacks, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["a", STRONG[:31], "a" * 64, "changeme" * 8, "abcabc" * 10])
@pytest.mark.parametrize("mode", [SCALE, {"redis_url": "redis://127.0.0.1:6379/0"}])
def test_a_weak_key_is_refused_at_scale_with_a_hint_how_to_create_one(
    key: str, mode: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_URL", "REDIS_URL", "DAYBOOK_SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError) as refusal:
        secret_key(environment(key, **mode), tmp_path)
    assert "secrets.token_urlsafe(48)" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert len(key) == 1 or key not in str(refusal.value)


def test_fallback_keys_must_be_strong_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="DAYBOOK_SECRET_KEY_FALLBACKS"):
        secret_key(environment(STRONG, fallbacks="old", **SCALE), tmp_path)


def test_a_random_key_is_accepted(tmp_path: Path) -> None:
    assert secret_key(environment(STRONG, fallbacks=STRONG[::-1], **SCALE), tmp_path) == STRONG


def test_on_one_machine_any_given_key_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    assert secret_key(environment("a"), tmp_path) == "a"


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe" * 32], ids=["empty", "blank", "binary"])
def test_an_empty_or_damaged_key_file_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "secret_key").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"^DAYBOOK_HOME is '.*'; secret_key in it is empty or no text[^\n]*$"):
        secret_key(environment(""), tmp_path)

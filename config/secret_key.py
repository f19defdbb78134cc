"""The key that signs cookies and queued jobs: from the environment or, on a single machine, a file in DAYBOOK_HOME."""

import contextlib
import os
import secrets
from pathlib import Path

from config.environment import ConfigurationError, Environment, split_list

_MIN_KEY_LENGTH = 32  # characters; 32 random bytes in base64 take 43
_MIN_DISTINCT_CHARACTERS = 8  # a repeated word is not a secret


def secret_key(env: Environment, home: Path) -> str:
    """Return the signing key from the environment or, on a single machine, the one stored in DAYBOOK_HOME."""
    given = env.secret_key.get_secret_value()
    scale = bool(env.database_url or env.redis_url.get_secret_value())
    if scale:
        _require_strong("DAYBOOK_SECRET_KEY", [given] if given else [])
        _require_strong("DAYBOOK_SECRET_KEY_FALLBACKS", split_list(env.secret_key_fallbacks))
    if given:
        return given
    if scale:
        raise ConfigurationError(
            "DAYBOOK_SECRET_KEY is not set; with DATABASE_URL or REDIS_URL it must be, the same for every process."
        )
    path = home / "secret_key"
    try:
        key = path.read_text().strip() if path.exists() else _create_key(path)
    except UnicodeDecodeError:
        key = ""
    except OSError as error:
        raise ConfigurationError(
            f"DAYBOOK_HOME is '{home}'; secret_key in it must be a file of this user ({error.strerror})."
        ) from None
    if not key:
        raise ConfigurationError(
            f"DAYBOOK_HOME is '{home}'; secret_key in it is empty or no text: restore it from a backup, or delete it "
            "to get a new one, which ends all logins."
        )
    return key


def guessable_key(keys: list[str]) -> str:
    """Return a warning if one of these keys can be guessed, else "". Anyone who knows a key can sign in as anybody and
    queue any job."""
    if not any(map(_is_guessable, keys)):
        return ""
    return f"DAYBOOK_SECRET_KEY (or a fallback) can be guessed: use at least {_MIN_KEY_LENGTH} random characters"


def _is_guessable(key: str) -> bool:
    """Return True if a key is too short or repetitive."""
    return len(key) < _MIN_KEY_LENGTH or len(set(key)) < _MIN_DISTINCT_CHARACTERS


def _require_strong(name: str, keys: list[str]) -> None:
    if any(map(_is_guessable, keys)):
        raise ConfigurationError(
            f"{name} is a value that is not shown; with DATABASE_URL or REDIS_URL it must be at least "
            f'{_MIN_KEY_LENGTH} random characters: python3 -c "import secrets; print(secrets.token_urlsafe(48))" '
            "makes one."
        )


def _create_key(path: Path) -> str:
    """Create a key file. If two processes start together, only one of them links its file, and both read that one."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(48))
    with contextlib.suppress(FileExistsError):
        os.link(fresh, path)
    fresh.unlink()
    return path.read_text().strip()

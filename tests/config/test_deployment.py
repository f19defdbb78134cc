"""Settings that apply if every origin is https, and what `check --deploy` says otherwise (`make check` runs it with
https).

Each case is a separate process, since settings are read once."""

import os
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from django.conf import settings
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.module_loading import import_string

from config import settings as as_shipped
from config.serving.middleware import RequestBoundary
from tests import warm_process

BASE = Path(settings.BASE_DIR)
DEPLOYED = {
    "DATABASE_URL": "postgres://daybook@127.0.0.1/daybook",
    "REDIS_URL": "redis://127.0.0.1:6379/0",
    "DAYBOOK_SECRET_KEY": "only-for-this-check-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEF",
    "DAYBOOK_ALLOWED_HOSTS": "chat.example.org",
    "DAYBOOK_TRUSTED_ORIGINS": "https://chat.example.org",
}
_SHOW = f"""
import sys
sys.path.insert(0, {str(BASE)!r})
import config.settings as s
print(s.SECURE_HSTS_SECONDS, s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE)
"""


def manage(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return warm_process.run([str(BASE / "manage.py"), *arguments], env=_environment(home, variables), timeout=60)


def _environment(home: Path, variables: Mapping[str, str]) -> dict[str, str]:
    removed = ("DAYBOOK_", "DATABASE_URL", "REDIS_URL", "OPENAI_", "DJANGO_SETTINGS_MODULE")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(removed)}
    return inherited | {"DAYBOOK_HOME": str(home)} | dict(variables)


@pytest.mark.parametrize(
    ("origins", "shown"),
    [
        ("https://chat.example.org,https://talk.example.org", "31536000 True True"),
        ("https://chat.example.org,http://10.0.0.7:8000", "0 False False"),
        ("https://chat.example.org,http://localhost:3000", "31536000 True True"),
        ("https://chat.example.org,app://10.0.0.7", "31536000 True True"),
        ("HTTPS://Chat.Example.org", "31536000 True True"),
        ("https://app.example.com", "0 False False"),
        ("", "0 False False"),
    ],
    ids=["every origin is https", "one is http", "another's is http", "an app's", "capitals", "only another's", "none"],
)
def test_hsts_is_enabled_if_every_origin_is_https(tmp_path: Path, origins: str, shown: str) -> None:
    hosts = "chat.example.org,talk.example.org,10.0.0.7"
    variables = {"DAYBOOK_ALLOWED_HOSTS": hosts, "DAYBOOK_TRUSTED_ORIGINS": origins}
    (tmp_path / "show.py").write_text(_SHOW)  # without loading the apps
    done = warm_process.run([str(tmp_path / "show.py")], env=_environment(tmp_path, variables), timeout=60)
    assert done.stdout.strip() == shown, done.stderr


@pytest.mark.parametrize("base", [SecurityMiddleware, RequestBoundary, CsrfViewMiddleware])
def test_the_middlewares_of_djangos_silenced_checks_are_installed(base: type) -> None:
    assert any(issubclass(import_string(name), base) for name in as_shipped.MIDDLEWARE)


def test_the_image_contains_every_package() -> None:
    project = tomllib.loads((BASE / "pyproject.toml").read_text())
    packages = set(project["tool"]["importlinter"]["root_packages"])
    included = set((BASE / "deploy" / "Dockerfile.dockerignore").read_text().split())
    assert packages <= set((BASE / "deploy" / "Dockerfile").read_text().split())  # compiled
    files = {"agents.yaml", "manage.py", "pyproject.toml", "requirements/runtime.txt", "static", "templates"}
    assert {line[1:] for line in included if line.startswith("!")} == packages | files


def test_djangos_deployment_checks_report_missing_https(tmp_path: Path) -> None:
    done = manage(
        tmp_path, "check", "--deploy", "--fail-level", "WARNING", **DEPLOYED | {"DAYBOOK_TRUSTED_ORIGINS": ""}
    )
    assert done.returncode != 0
    assert "daybook.W016" in done.stderr

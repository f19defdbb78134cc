"""docs/operations.md and deploy/ mention only existing commands, variables and services."""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.management import call_command, get_commands
from django.utils import timezone

from config.environment import Environment
from gateway.models import Session
from tests.admin_pages import rows_make
from tests.e2e.running import manage
from tests.migrated import migrated_file

BASE = Path(settings.BASE_DIR)
NAMES = [field.alias or f"DAYBOOK_{name.upper()}" for name, field in Environment.model_fields.items()]
FILES = [*(BASE / "deploy").rglob("*.*"), BASE / "docs" / "operations.md", BASE / "docs" / "clients.md"]


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_is_listed(name: str) -> None:
    page = (BASE / "docs" / "operations.md").read_text()
    assert f"| `{name}` |" in page


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_mentioned_command_and_variable_exists(file: Path) -> None:
    text = file.read_text()
    assert set(re.findall(r"manage\.py (?:`, `)?([a-z]+)", text)) <= set(get_commands())
    mentioned = set(re.findall(r"\bDAYBOOK_[A-Z_]+[A-Z]\b(?!<)", text)) - {"DAYBOOK_KEY"}
    assert {name for name in mentioned if not name.startswith("DAYBOOK_UPSTREAM_")} <= set(NAMES)


@pytest.mark.django_db
def test_the_documented_dump_is_loaded_into_another_database(tmp_path: Path) -> None:
    Group.objects.create(name="Of an earlier row")  # the key of "memory auditor" is not the other database's
    Group.objects.all().delete()
    rows_make()
    Session.objects.update(deleted_at=timezone.now())  # it can be restored
    page = (BASE / "docs" / "operations.md").read_text()
    dump = re.search(r"manage\.py dumpdata (.*?) --output (\S+)", page, re.DOTALL)
    assert dump
    call_command("dumpdata", *dump[1].replace("\\\n", "").split(), output=str(file := tmp_path / dump[2]), verbosity=0)
    home = tmp_path / "home"
    home.mkdir()
    shutil.copyfile(migrated_file(), home / "daybook.sqlite3")
    cleared = re.search(r'manage\.py (shell --no-imports -c) "(.*)"', page)
    assert cleared
    for command in ([*cleared[1].split(), cleared[2]], ["loaddata", str(file)]):
        done = manage(home, *command)
        assert done.returncode == 0, done.stderr
    tables = [model for model in apps.get_models() if not model._meta.proxy]
    ours = [model for model in tables if model._meta.app_label in {"auth", "gateway", "memories", "reviews"}]
    with closing(sqlite3.connect(home / "daybook.sqlite3")) as database:
        counts = (database.execute(f"SELECT count(*) FROM {row._meta.db_table}").fetchone() for row in ours)  # noqa: S608
        loaded = [number for (number,) in counts]
    assert dict(zip(ours, loaded, strict=True)) == {model: model._base_manager.count() for model in ours}


def test_systemd_does_not_interrupt_a_long_migration() -> None:
    units = [path.read_text() for path in (BASE / "deploy" / "systemd").glob("*.service")]
    preparing = [unit for unit in units if "\nExecStartPre=" in unit]
    assert preparing
    assert all("\nTimeoutStartSec=infinity\n" in unit for unit in preparing)  # it covers ExecStartPre


@pytest.mark.parametrize("file", ["compose.yaml", "compose.single.yaml"])
def test_containers_run_unprivileged_and_depend_on_existing_services(file: str) -> None:
    services = yaml.safe_load((BASE / "deploy" / file).read_text())["services"]
    own = {name: service for name, service in services.items() if service["image"] == "daybook"}
    assert own
    for service in services.values():
        assert service["read_only"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["image"] == "daybook" or re.search(r":\d+\.\d+", service["image"]), "an exact version"
    image = (BASE / "deploy" / "Dockerfile").read_text()
    user = re.search(r"useradd --uid (\d+) --gid daybook", image)
    assert user
    for service in own.values():
        assert service["cap_drop"] == ["ALL"]
        assert set(service.get("depends_on", {})) <= set(services)
        homes = [mount for mount in service["tmpfs"] if mount.startswith("/data")]
        assert all(f"uid={user[1]},gid={user[1]}," in mount for mount in homes), "otherwise it is root's"
    assert "\nUSER daybook\n" in image

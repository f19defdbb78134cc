"""Clients generated from docs/api/openapi.json return typed results."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.programs import INSTALLED, ROOT, install_packages
from tests.e2e.running import RunningDaybook

HERE = Path(__file__).parent / "generated"
DOCUMENT = str(ROOT / "docs/api/openapi.json")


def run(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_python_client(daybook: RunningDaybook, tmp_path: Path) -> None:
    folder = INSTALLED / "generated-python"
    if reason := install_packages(folder, pypi=["openapi-python-client==0.29.1", "httpx", "attrs", "python-dateutil"]):
        pytest.skip(reason)
    generate = ("generate", "--path", DOCUMENT, "--meta", "none", "--output-path", "daybook_client")
    run(str(folder / "bin/openapi-python-client"), *generate, folder=tmp_path)
    shutil.copy(HERE / "python_client.py", tmp_path)
    arguments = (daybook.address.rstrip("/"), daybook.api_key)
    assert run(str(folder / "bin/python"), "python_client.py", *arguments, folder=tmp_path) == "ok"


def test_a_typescript_client(daybook: RunningDaybook) -> None:
    folder = INSTALLED / "generated-typescript"
    if reason := install_packages(
        folder, npm=["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3"]
    ):
        pytest.skip(reason)
    shutil.copy(HERE / "client.ts", folder)
    run(
        str(folder / "node_modules/.bin/openapi-typescript"),
        DOCUMENT,
        "--default-non-nullable",
        "false",
        "-o",
        "daybook.d.ts",
        folder=folder,
    )
    options = ("--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "--esModuleInterop")
    run(str(folder / "node_modules/.bin/tsc"), *options, "client.ts", folder=folder)
    arguments = (daybook.address.rstrip("/"), daybook.api_key)
    assert run("node", "client.js", *arguments, folder=folder) == "ok"

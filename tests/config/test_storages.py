"""DAYBOOK_ATTACHMENTS: where attachments are stored."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from config.environment import ConfigurationError, Environment
from config.storages import attachments_storage, require_storage

LOCAL = "django.core.files.storage.FileSystemStorage"


def storage(value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return attachments_storage(Environment(attachments=SecretStr(text)), Path("/home/of/daybook"))


def test_by_default_attachments_are_in_a_private_folder_of_the_home() -> None:
    configured = storage("")
    assert configured["BACKEND"] == LOCAL
    assert configured["OPTIONS"]["location"] == "/home/of/daybook/attachments"
    assert (configured["OPTIONS"]["file_permissions_mode"], configured["OPTIONS"]["directory_permissions_mode"]) == (
        0o600,
        0o700,
    )


def test_a_storage_with_options_is_accepted() -> None:
    assert storage({"BACKEND": LOCAL}) == {"BACKEND": LOCAL, "OPTIONS": {}}
    value = {"BACKEND": LOCAL, "OPTIONS": {"location": "/srv"}}
    assert storage(value) == value


def test_a_tilde_in_the_folder_is_the_home_folder_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    value = {"BACKEND": LOCAL, "OPTIONS": {"location": "~/files"}}
    assert storage(value)["OPTIONS"] == {"location": "/home/ada/files"}


@pytest.mark.parametrize(
    "value",
    [
        "{",
        "secret words",
        [],
        {},
        {"BACKEND": 1},
        {"BACKEND": "storage"},
        {"BACKEND": LOCAL, "OPTIONS": []},
        {"BACKEND": LOCAL, "LOCATION": "secret"},
        {"BACKEND": "no.such.module.Storage"},
        {"BACKEND": "..Storage"},
    ],
)
def test_an_invalid_value_is_a_one_line_error_without_the_value(value: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^DAYBOOK_ATTACHMENTS .*; allowed is \{\"BACKEND\".*\}\.$"
    ) as refused:
        storage(value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("backend", ["django.core.files.storage.NoSuchStorage", "pathlib.PurePath"])
def test_a_process_does_not_start_with_an_unusable_storage(settings: Any, backend: str) -> None:
    settings.STORAGES = {**settings.STORAGES, "attachments": {"BACKEND": backend, "OPTIONS": {}}}
    with pytest.raises(ConfigurationError, match=r"^DAYBOOK_ATTACHMENTS is "):
        require_storage()

"""config.environment: what variables mean."""

import pytest

from config.environment import load_environment


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("DAYBOOK_PROMPTS", "prompts"),
        ("DAYBOOK_AGENTS", "agents"),
        ("DAYBOOK_STATIC", "static"),
        ("DAYBOOK_HOME", "home"),
        ("DAYBOOK_PORT", "port"),
        ("DAYBOOK_EMBEDDING_PATH", "embedding_path"),
    ],
)
def test_a_variable_that_is_set_to_nothing_is_as_one_that_is_not_set(
    monkeypatch: pytest.MonkeyPatch, name: str, field: str
) -> None:
    monkeypatch.delenv(name, raising=False)
    unset = getattr(load_environment(), field)
    monkeypatch.setenv(name, "")
    assert getattr(load_environment(), field) == unset

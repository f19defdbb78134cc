"""The tests named in docs/security.md exist."""

import re
from pathlib import Path

import pytest
from django.conf import settings

BASE = Path(settings.BASE_DIR)
PAGE = (BASE / "docs" / "security.md").read_text()
NAMED = sorted(set(re.findall(r"`((?:tests|bench)/[\w/]+\.py)(?:::(\w+))?`", PAGE)))


def test_the_page_names_tests_and_no_gaps() -> None:
    assert len(NAMED) > 40
    assert "TODO" not in PAGE


@pytest.mark.parametrize(("file", "function"), NAMED)
def test_every_test_named_on_the_page_exists(file: str, function: str) -> None:
    text = (BASE / file).read_text()
    assert not function or re.search(rf"^(?:async )?def {function}\(", text, re.MULTILINE)

"""Forms that cannot be decoded."""

import pytest
from django.test import Client

TOKEN = "a" * 32


@pytest.mark.parametrize("path", ["/login/", "/account/keys/", "/oauth/token", "/oauth/revoke"])
@pytest.mark.parametrize("charset", ["utf-7", "latin-1"])
@pytest.mark.django_db
def test_a_form_in_another_encoding_is_refused(path: str, charset: str) -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.cookies["daybook_csrf"] = TOKEN
    kind = f"application/x-www-form-urlencoded; charset={charset}"
    answer = client.generic("POST", path, b"a=b", content_type=kind, headers={"X-CSRFToken": TOKEN})
    assert answer.status_code == 400

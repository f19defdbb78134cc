"""manage.py prepare."""

import io

import pytest
from django.conf import settings as configured
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django import Settings

from gateway.keys import key_hash
from gateway.models import Agent, ApiKey

pytestmark = pytest.mark.django_db


def prepare() -> str:
    out = io.StringIO()
    call_command("prepare", stdout=out)
    return out.getvalue()


def test_the_first_prepare_creates_and_prints_the_credentials() -> None:
    printed = prepare()
    assert "Created the first administrator: admin" in printed
    assert "Created the first API key: dbk_" in printed
    assert printed.endswith("The database is ready.\n")
    assert (User.objects.get().username, ApiKey.objects.count()) == (configured.DAYBOOK_ADMIN_USER, 1)
    assert Agent.objects.exists()


def test_given_credentials_are_used_and_not_printed(settings: Settings) -> None:
    settings.DAYBOOK_ADMIN_USER = "ada"
    settings.DAYBOOK_ADMIN_PASSWORD = "correct horse battery"
    settings.DAYBOOK_API_KEY = "dbk_given_at_the_first_start_0123456789"
    printed = prepare()
    assert "Created the first administrator: ada" in printed
    assert settings.DAYBOOK_ADMIN_PASSWORD not in printed
    assert settings.DAYBOOK_API_KEY not in printed
    assert ApiKey.objects.get().sha256 == key_hash(settings.DAYBOOK_API_KEY)


def test_a_second_prepare_changes_nothing() -> None:
    prepare()
    assert prepare() == "The database is ready.\n"
    assert (User.objects.count(), ApiKey.objects.count()) == (1, 1)

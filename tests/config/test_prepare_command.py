"""manage.py prepare"""

import io

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command

from gateway.models import Agent, ApiKey

pytestmark = pytest.mark.django_db


def prepare() -> str:
    out = io.StringIO()
    call_command("prepare", stdout=out)
    return out.getvalue()


def test_it_makes_what_a_first_start_needs_and_says_it_once() -> None:
    said = prepare()
    assert "Created the first administrator: admin" in said
    assert "Created the first API key: dbk_" in said
    assert said.endswith("The database is ready.\n")
    assert (User.objects.get().username, ApiKey.objects.count()) == (settings.DAYBOOK_ADMIN_USER, 1)
    assert Agent.objects.exists()


def test_a_second_time_changes_nothing() -> None:
    prepare()
    assert prepare() == "The database is ready.\n"
    assert (User.objects.count(), ApiKey.objects.count()) == (1, 1)

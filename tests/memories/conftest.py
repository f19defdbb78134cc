import re
from collections.abc import Iterator

import pytest
from django.test import Client
from pytest_django.plugin import DjangoDbBlocker

from gateway.models import Agent
from memories.models import Owner
from tests.admin_pages import Rows, rows_make
from tests.pages import client_of
from tests.shared_rows import shared_rows


@pytest.fixture
def page(alice: Owner, agent: Agent) -> Client:
    """A client of Alice, for the pages of the product."""
    return client_of(alice)


@pytest.fixture(scope="module")
def all_rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Rows]:
    with shared_rows(django_db_blocker, rows_make) as made:
        yield made


@pytest.fixture
def rows(all_rows: Rows, db: None) -> Rows:
    """A row of every model in the admin."""
    return all_rows


def rows_in(html: str) -> list[int]:
    """Return the numbers of the memories that a page lists."""
    return [int(number) for number in re.findall(r'data-memory="(\d+)"', html)]

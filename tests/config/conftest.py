from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from tests.config.test_access_matrix import World
from tests.factories import owner_make
from tests.shared_rows import shared_rows


@pytest.fixture(scope="module")
def shared_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with shared_rows(django_db_blocker, lambda: World(owner_make("alice"))) as world:
        yield world


@pytest.fixture
def world(shared_world: World, db: None) -> World:
    shared_world.reset_cookies()
    return shared_world

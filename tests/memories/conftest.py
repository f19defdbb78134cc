import pytest
from django.test import Client

from memories.models import Book, Owner
from memories.services import book_get_or_create
from tests.admin_rows import staff_client


@pytest.fixture
def book(alice: Owner) -> Book:
    return book_get_or_create(alice.pk, "main")


@pytest.fixture
def root(db: None) -> Client:
    """A client of a superuser."""
    return staff_client(superuser=True)

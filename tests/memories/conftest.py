import re

import pytest
from django.test import Client

from gateway.models import Agent
from memories.models import Owner
from tests.pages import client_of


@pytest.fixture
def page(alice: Owner, agent: Agent) -> Client:
    """A client of Alice, for the pages of the product."""
    return client_of(alice)


def rows_in(html: str) -> list[int]:
    """Return the numbers of the memories that a page lists."""
    return [int(number) for number in re.findall(r'data-memory="(\d+)"', html)]

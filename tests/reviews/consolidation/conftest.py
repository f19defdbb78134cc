import pytest

from gateway import upstream
from tests.reviews.consolidation.answering_model import AnsweringModel
from tests.reviews.consolidation.rows import settings_make


@pytest.fixture
def answering() -> AnsweringModel:
    """The test double of the model for consolidation."""
    double = AnsweringModel()
    upstream.install(double)
    return double


@pytest.fixture
def consolidation_on(db: None) -> None:
    settings_make()

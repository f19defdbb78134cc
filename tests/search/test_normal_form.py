"""Normalisation in slices: the same as that of unicodedata, except for very many marks in a row"""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search import normal_form
from search.normal_form import normalized

# Letters and marks that are composed and put in order, Hangul, kana, ligatures, and marks that are not of class 0 only
# once they are decomposed.
LETTERS = "aAéçſﬁ①Ω가각각がカﾞﾟﷺ่กெொಕೋොාේ"
MARKS = "\u0301\u0316\u0323\u0327\u0338\u3099\u0344\u0f73\u0f71"
WORDS = st.lists(st.tuples(st.sampled_from(LETTERS), st.text(MARKS, max_size=4)).map("".join)).map("".join)


@pytest.fixture
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normal_form, "_SLICE", 1)


@pytest.mark.usefixtures("_small_slices")
@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@given(text=WORDS | st.text(max_size=60))
def test_slices_change_nothing(form: Any, text: str) -> None:
    assert normalized(text, form) == unicodedata.normalize(form, text)


def test_no_call_normalises_many_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a call grows with the square of the marks."""
    sizes: list[int] = []
    normalize = unicodedata.normalize

    def measured(form: str, text: str) -> str:
        sizes.append(len(text))
        return normalize(form, text)

    monkeypatch.setattr(unicodedata, "normalize", measured)
    text = "a" + "\u0301\u0316" * 2_000
    found = normalized(text)
    assert max(sizes) < 300
    assert sorted(normalize("NFD", found)) == sorted(text)

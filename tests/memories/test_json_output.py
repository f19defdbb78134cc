"""JSON with long texts: the same as json.dumps writes, without looking at every character"""

import json
from json.encoder import encode_basestring_ascii
from typing import Any

import pytest

from memories.json_output import LONG, ConstantDict, LongTextEncoder

PLAIN = "QUFB" * LONG
OTHERS = ['"' + PLAIN, PLAIN + "\\", "é" + PLAIN, PLAIN + "\x7f", PLAIN + "\n", PLAIN + "\ud83d\ude00", "short", ""]


@pytest.mark.parametrize("options", [{}, {"sort_keys": True}, {"ensure_ascii": False, "separators": (",", ":")}])
@pytest.mark.parametrize("other", OTHERS, ids=range(len(OTHERS)))
def test_it_writes_what_json_dumps_writes(other: str, options: dict[str, Any]) -> None:
    value = {"z": [PLAIN, {"b": other, "a": (PLAIN + "x", 1, None, True)}], "a": PLAIN + "y", "n": 1.5, PLAIN: {}}
    assert json.dumps(value, cls=LongTextEncoder, **options) == json.dumps(value, **options)


@pytest.mark.parametrize("options", [{}, {"sort_keys": True}, {"ensure_ascii": False, "separators": (",", ":")}])
def test_what_is_fixed_is_written_as_ever_however_often(options: dict[str, Any]) -> None:
    fixed = ConstantDict({"name": "gr\u00fc\u00dfe", "b": [PLAIN, 1], "a": {}})
    value = [fixed, {"z": fixed, "a": PLAIN}, fixed]
    for _ in range(2):
        assert json.dumps(value, cls=LongTextEncoder, **options) == json.dumps(value, **options)
        assert json.dumps(fixed, cls=LongTextEncoder) == json.dumps(fixed)


def test_a_copy_of_what_is_fixed_may_be_changed() -> None:
    fixed = ConstantDict(name="one")
    json.dumps([fixed], cls=LongTextEncoder)
    assert json.dumps([{**fixed, "name": "two"}, fixed | {"more": 1}], cls=LongTextEncoder) == json.dumps(
        [{"name": "two"}, {"name": "one", "more": 1}]
    )


def test_what_json_cannot_hold_is_refused_as_ever() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        json.dumps([PLAIN, float("nan")], cls=LongTextEncoder, allow_nan=False)
    with pytest.raises(TypeError):
        json.dumps([PLAIN, object()], cls=LongTextEncoder)


def test_a_long_text_is_not_read_character_by_character(monkeypatch: pytest.MonkeyPatch) -> None:
    """What json does with each text it is given: it never meets one that is long and plain."""
    met: list[str] = []

    def counting(text: str) -> str:
        met.append(text)
        return encode_basestring_ascii(text)

    monkeypatch.setattr(json.encoder, "encode_basestring_ascii", counting)
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)  # the one written in C calls no function of ours
    json.dumps({"url": PLAIN, "name": "short"}, cls=LongTextEncoder)
    assert "short" in met
    assert PLAIN not in met

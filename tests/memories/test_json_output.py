"""JSON with long texts: the same output as json.dumps, without examining every character"""

import json
from json.encoder import encode_basestring_ascii
from typing import Any

import pytest

from memories import json_output
from memories.json_output import LONG, MANY, ConstantDict, LongTextEncoder

PLAIN = "QUFB" * LONG
TEXTS = ['"' + PLAIN, PLAIN + "\\", "é" + PLAIN, PLAIN + "\x7f", PLAIN + "\n", PLAIN + "\ud83d\ude00", "short", ""]


@pytest.mark.parametrize("options", [{}, {"sort_keys": True}, {"ensure_ascii": False, "separators": (",", ":")}])
@pytest.mark.parametrize("other", TEXTS, ids=range(len(TEXTS)))
def test_the_output_equals_that_of_json_dumps(other: str, options: dict[str, Any]) -> None:
    value = {"z": [PLAIN, {"b": other, "a": (PLAIN + "x", 1, None, True)}], "a": PLAIN + "y", "n": 1.5, PLAIN: {}}
    assert json.dumps(value, cls=LongTextEncoder, **options) == json.dumps(value, **options)


@pytest.mark.parametrize("options", [{}, {"sort_keys": True}, {"ensure_ascii": False, "separators": (",", ":")}])
def test_a_fixed_object_is_always_written_like_json_dumps(options: dict[str, Any]) -> None:
    fixed = ConstantDict({"name": "gr\u00fc\u00dfe", "b": [PLAIN, 1], "a": {}})
    value = [fixed, {"z": fixed, "a": PLAIN}, fixed]
    for _ in range(2):
        assert json.dumps(value, cls=LongTextEncoder, **options) == json.dumps(value, **options)
        assert json.dumps(fixed, cls=LongTextEncoder) == json.dumps(fixed)


@pytest.mark.parametrize("options", [{}, {"sort_keys": True}, {"ensure_ascii": False, "separators": (",", ":")}])
def test_a_long_list_is_written_like_json_dumps(options: dict[str, Any]) -> None:
    message = {"role": "user", "content": ["é\n" * LONG, 1]}
    value = {
        "z": [[[number] * 250, message] for number in range(250)],
        "a": tuple(range(MANY + 1)),
        "b": [PLAIN] * MANY,
    }
    assert json.dumps(value, cls=LongTextEncoder, **options) == json.dumps(value, **options)


def test_a_text_deep_in_long_lists_is_not_copied_at_each_level() -> None:
    text = "A" * LONG
    value: list[Any] = [text] * 5
    for _ in range(30):
        value = [value, *range(MANY)]
    encoder = LongTextEncoder()
    pieces = encoder.pieces(value)
    assert sum(piece is text for piece in pieces) == 5
    assert "".join(pieces) == encoder.encode(value) == json.dumps(value)


def test_no_call_encodes_much_of_a_long_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of the json module holds the interpreter lock."""
    sizes: list[int] = []

    def measured(encode: Any) -> Any:
        def encode_and_measure(*given: Any) -> str:
            text = str(encode(*given))
            sizes.append(len(text))
            return text

        return encode_and_measure

    monkeypatch.setattr(json.JSONEncoder, "encode", measured(json.JSONEncoder.encode))
    monkeypatch.setattr(json_output, "encode_basestring_ascii", measured(encode_basestring_ascii))
    messages = [{"role": "user", "content": "One more word.\n" * 60}] * 2_000
    json.dumps({"messages": messages, "text": 'a\n"' * 500_000}, cls=LongTextEncoder)
    assert max(sizes) < 200_000
    assert sum(sizes) > 4_000_000


def test_a_copy_of_a_fixed_object_may_be_changed() -> None:
    fixed = ConstantDict(name="one")
    json.dumps([fixed], cls=LongTextEncoder)
    assert json.dumps([{**fixed, "name": "two"}, fixed | {"more": 1}], cls=LongTextEncoder) == json.dumps(
        [{"name": "two"}, {"name": "one", "more": 1}]
    )


def test_values_that_json_cannot_represent_are_refused() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        json.dumps([PLAIN, float("nan")], cls=LongTextEncoder, allow_nan=False)
    with pytest.raises(TypeError):
        json.dumps([PLAIN, object()], cls=LongTextEncoder)


def test_a_long_text_is_not_encoded_character_by_character(monkeypatch: pytest.MonkeyPatch) -> None:
    """The json module never gets to encode a long text without special characters."""
    encoded: list[str] = []

    def record(text: str) -> str:
        encoded.append(text)
        return encode_basestring_ascii(text)

    monkeypatch.setattr(json.encoder, "encode_basestring_ascii", record)
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)  # the C encoder would not call `record`
    json.dumps({"url": PLAIN, "name": "short"}, cls=LongTextEncoder)
    assert "short" in encoded
    assert PLAIN not in encoded

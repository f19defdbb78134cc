"""JSON with long texts: the same as json.dumps writes, without looking at every character"""

import json
import time
from typing import Any

import pytest

from memories.json_output import LONG, LongTextEncoder

PLAIN = "QUFB" * LONG
OTHERS = ['"' + PLAIN, PLAIN + "\\", "é" + PLAIN, PLAIN + "\x7f", PLAIN + "\n", PLAIN + "\ud83d\ude00", "short", ""]


@pytest.mark.parametrize("options", [{}, {"sort_keys": True}, {"ensure_ascii": False, "separators": (",", ":")}])
@pytest.mark.parametrize("other", OTHERS, ids=range(len(OTHERS)))
def test_it_writes_what_json_dumps_writes(other: str, options: dict[str, Any]) -> None:
    value = {"z": [PLAIN, {"b": other, "a": (PLAIN + "x", 1, None, True)}], "a": PLAIN + "y", "n": 1.5, PLAIN: {}}
    assert json.dumps(value, cls=LongTextEncoder, **options) == json.dumps(value, **options)


def test_what_json_cannot_hold_is_refused_as_ever() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        json.dumps([PLAIN, float("nan")], cls=LongTextEncoder, allow_nan=False)
    with pytest.raises(TypeError):
        json.dumps([PLAIN, object()], cls=LongTextEncoder)


def test_a_file_in_base64_takes_less_time() -> None:
    """Of several tries the fastest counts: a busy machine only adds."""

    def fastest(encoder: type[json.JSONEncoder]) -> float:
        times = []
        for _ in range(5):
            began = time.thread_time()
            json.dumps({"url": PLAIN * 20}, cls=encoder)
            times.append(time.thread_time() - began)
        return min(times)

    assert fastest(LongTextEncoder) < fastest(json.JSONEncoder) / 2

"""gateway.model_call: model calls outside a turn"""

import pytest

from gateway.model_call import ask
from gateway.upstream import ModelTarget
from memories.errors import RateLimited, TooLarge, UpstreamTimeout
from tests.scripted_model import Hangs, Says, ScriptedModel

TARGET = ModelTarget("local", "llama")
MESSAGES = ({"role": "user", "content": "Hi"},)


async def test_ask_collects_text_calls_usage_and_model(model: ScriptedModel) -> None:
    model.script(Says(pieces=("One ", "moment."), calls=(("add", "{}"),)))
    tool = {"type": "function", "function": {"name": "add"}}
    answer = await ask(TARGET, MESSAGES, seconds=7, tools=[tool], request_id="r")
    assert (answer.text, [call.name for call in answer.calls]) == ("One moment.", ["add"])
    assert (answer.usage["total_tokens"], answer.model) == (10, "scripted")
    (sent,) = model.calls
    assert (sent.upstream, sent.model, sent.request_id) == ("local", "llama", "r")
    assert (sent.messages, sent.tools) == (MESSAGES, (tool,))
    assert 0 < sent.seconds <= 7


async def test_ask_raises_typed_errors(model: ScriptedModel) -> None:
    model.script(RateLimited("Later.", status=429), Hangs(pieces=("Half",)), "A long answer.")
    with pytest.raises(RateLimited):
        await ask(TARGET, MESSAGES, seconds=5)
    with pytest.raises(UpstreamTimeout):
        await ask(TARGET, MESSAGES, seconds=0.5)
    with pytest.raises(TooLarge):
        await ask(TARGET, MESSAGES, seconds=5, answer_bytes=5)

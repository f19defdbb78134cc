"""Background tasks of clients: passed through without a session, memory or counters"""

import json

import pytest

from gateway.models import Message, Run, Session
from memories.database.access import in_thread
from memories.errors import UpstreamError
from memories.models import Owner
from tests.conftest import Api
from tests.factories import memory_make
from tests.gateway.v1 import Chat, ask, stream, user
from tests.scripted_model import ScriptedModel

pytestmark = [pytest.mark.any_database, pytest.mark.usefixtures("agent")]

TITLE = (
    "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Guidelines:\n- …\n"
    '### Output:\nJSON format: { "title": "…" }\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>'
)
TAGS = "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history\n\n### Guidelines:\n- …"
FOLLOW_UPS = "### Task:\nSuggest 3-5 relevant follow-up questions or prompts\n### Guidelines:\n- …\n### Output:\n…"
QUERIES = "### Task:\nAnalyze the chat history to determine the necessity of generating search queries\n### Guidelines:"
COMPLETION = "### Task:\nYou are an autocompletion system. Continue the text in `<text>`\n### **Instructions**:\n<type>"
LIBRECHAT = (
    "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. "
    "Only return the title itself.\n\nConversation:\nUser: hi\nAI: Hello."
)
LIBRECHAT_STRUCTURED = "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. …"
NEXTCHAT = "Please generate a four to five word title summarizing our conversation without any lead-in, punctuation, …"


async def nothing_stored() -> bool:
    return not await in_thread(lambda: Session.objects.exists() or Run.objects.exists() or Message.objects.exists())


@pytest.mark.parametrize(
    "messages",
    [
        [user(TITLE)],
        [user(TAGS)],
        [user(FOLLOW_UPS)],
        [user(QUERIES)],
        [user(COMPLETION)],
        [user(LIBRECHAT)],
        [user(LIBRECHAT_STRUCTURED)],
        [user("hi"), {"role": "assistant", "content": "Hello."}, user(NEXTCHAT)],
        [
            user("hi"),
            {"role": "assistant", "content": "Hello."},
            {"role": "system", "content": "Summarize the discussion briefly in 200 words or less to use as a prompt for"
             " future context."},
        ],
        [{"role": "system", "content": "You are a professional conversation summarizer. …"}, user("hi\nHello.")],
        [{"role": "system", "content": "Say something."}],
        [{"role": "assistant", "content": "Once upon a time"}],
    ],
)  # fmt: skip
async def test_background_tasks_are_passed_through(
    alice_api: Api, alice: Owner, model: ScriptedModel, messages: list[dict[str, str]]
) -> None:
    await in_thread(memory_make, alice, "Likes tea.")
    model.script("Greeting")
    response = await ask(alice_api, *messages, temperature=0)
    assert (response.status, response.text, response.json["model"]) == (200, "Greeting", "assistant")
    assert (response.session, response.run) == ("", "")
    assert model.calls[0].body(stream=False) == {"model": "gpt-4o-mini", "messages": messages, "temperature": 0}
    assert await nothing_stored()


@pytest.mark.parametrize("task", ["title_generation", "tags_generation", "follow_up_generation", "query_generation"])
async def test_metadata_may_mark_a_task(alice_api: Api, model: ScriptedModel, task: str) -> None:
    model.script("Greeting")
    assert (await ask(alice_api, "hi", metadata={"task": task})).session == ""
    assert await nothing_stored()


async def test_tasks_leave_no_trace_in_a_named_session(alice_api: Api, model: ScriptedModel) -> None:
    chat = Chat(alice_api, model, headers={"x_openwebui_chat_id": "mine"})
    await chat.say("hi", "Hello.")
    model.script("Greeting")
    assert (await ask(alice_api, user(TITLE), headers=chat.headers)).session == ""
    await chat.say("more", "Yes.")
    assert (await in_thread(Session.objects.get)).turns == 2


@pytest.mark.parametrize(
    "text",
    [
        "Give me a title for this conversation",
        "Generate a concise title for my essay about tea: Tea is good.",
        "### Task list\n- buy tea",
        "### Task:\nbuy tea",
        "Suggest 3-5 follow-up questions I could ask my doctor",
        "How do I prompt a model to provide a concise, 5-word-or-less title for the conversation?",
        "Summarize the discussion briefly",
    ],
)
async def test_a_message_that_resembles_a_task_is_a_turn(alice_api: Api, model: ScriptedModel, text: str) -> None:
    model.script("Fine.")
    assert (await ask(alice_api, text, metadata={"task": "homework"})).session


async def test_tasks_are_streamed_on_request(alice_api: Api, model: ScriptedModel) -> None:
    model.script("Greeting", "Greeting")
    chunks = await stream(alice_api, user(TITLE))
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "Greeting"
    assert {chunk["model"] for chunk in chunks} == {"assistant"}
    with_usage = await stream(alice_api, user(TITLE), stream_options={"include_usage": True})
    assert with_usage[-1]["usage"]["total_tokens"] == 10


@pytest.mark.parametrize("streamed", [True, False])
async def test_errors_of_tasks_have_a_status(alice_api: Api, model: ScriptedModel, streamed: bool) -> None:
    model.script(UpstreamError("no"))
    response = await ask(alice_api, user(TITLE), stream=streamed)
    assert (response.status, response.code) == (502, "upstream_error")
    assert json.dumps(response.json)

"""Fingerprints that identify conversations (pure functions)"""

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from gateway.runs import fingerprint
from gateway.runs.fingerprint import ResentConversation, first_history_hash, next_history_hash, read_conversation
from tests.gateway.v1 import assistant, user

OWNER = UUID(int=7)


def read(*messages: dict[str, Any]) -> ResentConversation:
    return read_conversation(OWNER, "assistant", messages)


def test_a_history_hash_grows_with_each_pair() -> None:
    start = first_history_hash(OWNER, "assistant")
    assert read(user("a")).history_hash_before == start
    first = next_history_hash(start, "a", "b")
    conversation = read(user("a"), assistant("b"), user("c"))
    assert (conversation.history_hash_before, conversation.turns_before) == (first, 1)
    longer = read(user("a"), assistant("b"), user("c"), assistant("d"), user("e"))
    assert (longer.history_hash_before, longer.turns_before) == (next_history_hash(first, "c", "d"), 2)


def test_the_hash_depends_on_owner_and_agent() -> None:
    messages = [user("a")]
    hashes = {
        read_conversation(owner, agent, messages).history_hash_before
        for owner, agent in ((OWNER, "assistant"), (OWNER, "other"), (UUID(int=8), "assistant"))
    }
    assert len(hashes) == 3


def test_adjacent_texts_are_separated_in_the_hash() -> None:
    assert (
        read(user("ab"), assistant("c"), user("x")).history_hash_before
        != read(user("a"), assistant("bc"), user("x")).history_hash_before
    )


def test_system_developer_and_tool_messages_are_ignored() -> None:
    plain = read(user("a"), assistant("b"), user("c"))
    assert plain == read(
        {"role": "system", "content": "s"},
        user("a"),
        assistant(None, tool_calls=[{"id": "1"}]),
        {"role": "tool", "tool_call_id": "1", "content": "t"},
        assistant("b"),
        {"role": "developer", "content": "d"},
        user("c"),
    )


def test_the_steps_of_an_answer_are_joined() -> None:
    joined = read(user("a"), assistant("Let me see.Found."), user("c"))
    steps = read(user("a"), assistant("Let me see."), assistant("Found."), user("c"))
    spaced = read(user("a"), assistant("Let me see.\n\nFound. "), user("c"))
    assert joined == steps == spaced


def test_messages_after_the_last_user_message_are_ignored() -> None:
    assert read(user("a")) == read(user("a"), assistant("b"), {"role": "tool", "content": "t"})


def test_images_are_part_of_the_fingerprint() -> None:
    one, other = (
        read(user([{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": url}}]))
        for url in ("data:a", "data:b")
    )
    assert one.user_key != other.user_key
    assert read(user([{"type": "text", "text": "what?"}])).user_key == read(user("what?")).user_key


def test_memory_commands_and_their_answers_are_ignored() -> None:
    assert read(user("a"), assistant("b"), user("/memory view"), assistant("nothing"), user("c")) == read(
        user("a"), assistant("b"), user("c")
    )
    assert read(user("What does /memory view do?")).user == "Whatdoes/memoryviewdo?"


def test_an_unanswered_message_is_identified() -> None:
    conversation = read(user("a"), user("b"))
    assert conversation.unanswered_user_key == read(user("a")).user_key
    assert conversation.user == "ab"
    assert read(user("a"), assistant("x"), user("b")).unanswered_user_key == ""


def test_a_conversation_may_start_with_the_assistant() -> None:
    assert read(assistant("Welcome."), user("a")).turns_before == 1


_messages = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
            "content": st.one_of(
                st.none(),
                st.text(max_size=8),
                st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=5)}), max_size=2),
            ),
        }
    ),
    max_size=8,
)


@given(_messages)
def test_canonical_roles_always_alternate(messages: list[dict[str, Any]]) -> None:
    roles = [role for role, _ in fingerprint.canonical(messages)]
    assert all(role == ("user", "assistant")[index % 2] for index, role in enumerate(roles))
    conversation = read(*messages)
    # The last user message is the new turn; every pair before it is an earlier turn.
    assert conversation.turns_before == max(0, roles.count("user") - 1)


@given(st.lists(st.tuples(st.text(min_size=1, max_size=5), st.text(min_size=1, max_size=5)), max_size=4), st.text())
def test_next_history_hash_continues_the_hash_of_the_conversation(pairs: list[tuple[str, str]], last: str) -> None:
    messages = [message for said, answer in pairs for message in (user(f"u{said}"), assistant(f"a{answer}"))]
    conversation = read(*messages, user(f"u{last}"))
    after = next_history_hash(
        conversation.history_hash_before, conversation.user, fingerprint.strip_whitespace("the answer")
    )
    assert read(*messages, user(f"u{last}"), assistant("the  answer"), user("next")).history_hash_before == after


CONTENTS = st.sampled_from(
    [
        "",
        " \n",
        "a b",
        "/memory view",
        None,
        [],
        [{"type": "text", "text": " "}],
        [{"type": "text", "text": "c d"}, {"type": "text", "text": "e"}],
        [{"type": "image_url", "image_url": {"url": "data:,x"}}],
    ]
)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), CONTENTS)))
def test_the_users_texts_do_not_depend_on_what_was_answered(said: list[tuple[str, Any]]) -> None:
    messages = [{"role": role, "content": content} for role, content in said]
    expected = ["".join(texts) for role, texts in fingerprint.canonical(messages) if role == "user"]
    assert fingerprint.user_texts(messages) == expected


def test_white_space_is_removed_from_a_long_text_in_slices() -> None:
    text = " a\n\u3000b\t" * 30_000
    assert fingerprint.strip_whitespace(text) == "ab" * 30_000

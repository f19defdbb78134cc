"""Text that clients wrap around a message does not count as the person's own words"""

import time

import pytest

from gateway.models import Agent, Session
from gateway.runs.rows import title_of
from gateway.runs.wrappers import own_words
from memories.database.access import in_thread
from memories.models import Owner
from tests.conftest import Api
from tests.factories import agent_make, memory_make
from tests.gateway.v1 import ask
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.any_database

# Appended by aider in its formats "whole" and "udiff", and by Open WebUI when code execution is on.
WHOLE_FILES = (
    "To suggest changes to a file you MUST return the entire content of the updated file.\nYou MUST use this *file "
    "listing* format:\n\npath/to/filename.js\n```\n…\n```"
)
UNIFIED_DIFFS = "# File editing rules:\n\nReturn edits similar to unified diffs that `diff -U0` would produce.\n\n…"
CODE_INTERPRETER = (
    '\n#### Code Interpreter\n\nYou have access to a Python code interpreter via: `<code_interpreter type="code" '
    'lang="python"></code_interpreter>`\n\n- Use it in this response.'
)
# LangChain's agents that call tools in text: everything is one user message, the results as well.
REACT_PROMPT = "Use this format:\n\nAction: the action\nAction Input: its input\nObservation: its result\n\nBegin!\n\n"
VS_CODE = (
    '<attachments>\n<attachment id="a.py">\nx = 1\n</attachment>\n</attachments>\n<context>\nThe current date is '
    "December 1, 2026.\n</context>\n<editorContext>\nThe user's current file is /w/a.py. \n</editorContext>\n"
    "<reminderInstructions>\nYou are an agent - you must keep going until the query is resolved.\n"
    "</reminderInstructions>\n<userRequest>\n{}\n</userRequest>\n"
)
VS_CODE_WORKSPACE = (
    "<environment_info>\nThe user's current OS is: Linux\n</environment_info>\n<workspace_info>\nI am working in a "
    "workspace with the following folders:\n- /w\n</workspace_info>"
)
CLINE_REMINDER = (
    "[SYSTEM] This run is not complete until you call one of these terminal completion tools: submit_and_exit. "
    "Continue working if requirements are not met. If the task is complete, call the appropriate terminal completion "
    "tool now."
)
GENKIT_FORMAT = 'Output should be in JSON format and conform to the following schema:\n\n```\n{"type":"object"}\n```\n'
REMINDER = "<system-reminder>\nThe date is Monday.\n</system-reminder>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Plain words", "Plain words"),
        (f"{REMINDER}\nFix the tests", "Fix the tests"),
        (f"Fix the tests\n\n{REMINDER}", "Fix the tests"),
        (f"{REMINDER}{REMINDER}", ""),
        ("<environment_details>\n# Time\n9:00\n</environment_details>", ""),
        (
            "<local-command-caveat>The command below was run directly in Claude Code.</local-command-caveat>\n"
            "<command-name>/compact</command-name>\n<command-message>compact</command-message>\n"
            "<command-args></command-args>\n<local-command-stdout>Compacted </local-command-stdout>\nFix the tests",
            "Fix the tests",
        ),
        ("<bash-input>ls</bash-input>\n<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>\nFix", "ls\n\nFix"),
        ("<current_datetime>2026-11-30T09:00:00.000+00:00</current_datetime>\n\nFix it", "Fix it"),
        ('<user_input mode="act">Fix it</user_input>', "Fix it"),
        ("<task>\nFix it\n</task>\n<environment_details>x</environment_details>", "Fix it"),
        ("<think>Hm. 1 < 2</think>\nYes.", "Yes."),
        ('<details type="reasoning" done="true"><summary>Thought</summary>Hm.</details>\nYes.', "Yes."),
        ("<details><summary>Log</summary>E1</details> Why?", "<details><summary>Log</summary>E1</details> Why?"),
        ("### Task:\nRespond to the user query.\n<context>\n<source>a</source>\n</context>\n\nWho?", "Who?"),
        ("<context>A long page</context>\nSum it up", "Sum it up"),
        ("<context>Only this</context>", "<context>Only this</context>"),
        ("# AGENTS.md instructions for /home/a\n\n<INSTRUCTIONS>Be brief</INSTRUCTIONS>", ""),
        ("<system>\nRan command: `ls`\n</system>\n\nNow the other one", "Now the other one"),
        ("Use short names\n\n# *SEARCH/REPLACE block* Rules:\n\nOne block for each change.", "Use short names"),
        ("Use short names\n\n# V4A Diff Format Rules:\n\nBegin with the mark.", "Use short names"),
        (f"Use short names\n\n{WHOLE_FILES}", "Use short names"),
        (f"Use short names\n\n{UNIFIED_DIFFS}", "Use short names"),
        (f"How much is that?\n{CODE_INTERPRETER}", "How much is that?"),
        ("What are the\n# File editing rules:\nof ours?", "What are the\n# File editing rules:\nof ours?"),
        ("I have *added these files to the chat* so you can go ahead and edit them.\n\nnotes.md\n```\n…\n```", ""),
        ("Here are summaries of some files present in my git repository.\nDo not propose changes to these files.", ""),
        ("I ran this command:\n\nmake tea\n\nAnd got this output:\n\nno kettle", ""),
        ("New task:\nMake tea.", "Make tea."),
        ("Your task: Make tea.\n", "Your task: Make tea."),
        ("This is the context relevant to the task:\nA page.\n\nYour task: Make tea.", "Make tea."),
        ("This is the expected criteria for your output:\nBrief.\n\nYour task: Make tea.", "Make tea."),
        ("Message: Make tea.\n\nThis message was created at 2026-12-01T12:37:22.430Z", "Make tea."),
        ("Message: Make tea.", "Message: Make tea."),
        ("Observation:\nExecution logs:\n21\nLast output from code snippet:\nNone", ""),
        ("Call id: call_2\nError:\nCode execution failed at line 'a' due to: …", ""),
        ("Observation:\nExecution logs:\n21\nLast output from code snippet:\n21\nNew task:\nMake tea.", "Make tea."),
        ("Observation:\nthe kettle is blue", "Observation:\nthe kettle is blue"),
        ("I ran this command: make tea. What is wrong?", "I ran this command: make tea. What is wrong?"),
        ("Change the greeting to be more casual", ""),
        ("Change the greeting to be more casual in my letter", "Change the greeting to be more casual in my letter"),
        ("This is the Gemini CLI. We are setting up the context for our chat.\nToday's date is Monday.", ""),
        ("Code output: 42\n\nWhat does this output mean / what's next (if anything, or are we done)?", ""),
        ("The tool call above generated the attached media.", ""),
        (
            f"{REACT_PROMPT}Question: Who?\nThought: I look.\nAction: x\nAction Input: y\nObservation: z\nThought:",
            "Who?",
        ),
        ("Why does it say\nBegin!\nQuestion: Who?", "Why does it say\nBegin!\nQuestion: Who?"),
        ("exitcode: 1 (execution failed)\nCode output: \nno kettle", ""),
        ("Code output: 42\n\nIs that right?", "Code output: 42\n\nIs that right?"),
        (VS_CODE.format("Fix the tests"), "Fix the tests"),
        (VS_CODE_WORKSPACE, ""),
        (VS_CODE_WORKSPACE + VS_CODE.format("Fix the tests"), "Fix the tests"),
        ("Close <userRequest> in a.py", "Close <userRequest> in a.py"),
        ("What is <userRequest>x</userRequest>", "What is <userRequest>x</userRequest>"),
        (GENKIT_FORMAT, ""),
        (f"My dog is Rex.\n{GENKIT_FORMAT}", "My dog is Rex."),
        (f"{GENKIT_FORMAT}Is this schema right?", f"{GENKIT_FORMAT}Is this schema right?"),
        (
            "Cats.\nOutput should be a JSON array conforming to the following schema:\n    \n```\n{}\n```\n    ",
            "Cats.",
        ),
        (
            "Cats.\nOutput should be JSONL format, a sequence of JSON objects (one per line) separated by a newline "
            "`\\n` character. Each line should be a JSON object conforming to the following schema:\n\n```\n{}\n```\n",
            "Cats.",
        ),
        (
            "Cats?\nOutput should be ONLY one of the following enum values. Do not output any additional information "
            "or add quotes.\n\nYES\nNO",
            "Cats?",
        ),
        ("Output should be ONLY one of two colours.", "Output should be ONLY one of two colours."),
        (CLINE_REMINDER, ""),
        (f"Fix the tests\n{CLINE_REMINDER}", "Fix the tests"),
        (
            "[SYSTEM] This run is not complete until you call one of these terminal completion tools: x. Who says so?",
            "[SYSTEM] This run is not complete until you call one of these terminal completion tools: x. Who says so?",
        ),
        ("[Request interrupted by user]", ""),
        ("[Request interrupted by user for tool use]\nTake the bus", "Take the bus"),
        ("Take the train\n[Request interrupted by user]\nTake the bus", "Take the train\nTake the bus"),
        ("Why [Request interrupted by user]?", "Why [Request interrupted by user]?"),
        ("What does <think> do?", "What does <think> do?"),
        ("if a < b: return <T>", "if a < b: return <T>"),
    ],
)
def test_own_words_removes_wrappers(text: str, words: str) -> None:
    assert own_words(text) == words


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("text", [REMINDER, CLINE_REMINDER, GENKIT_FORMAT])
async def test_a_message_that_is_only_a_reminder_belongs_to_the_message_before_it(
    alice_api: Api, agent: Agent, model: ScriptedModel, text: str, parts: bool
) -> None:
    """AgentScope sends the date so. The message of the turn is the person's, which recall and the title use."""
    model.script("Hello.")
    reminder = [{"type": "text", "text": text}] if parts else text
    await ask(alice_api, {"role": "user", "content": "Fix the tests"}, {"role": "user", "content": reminder})
    assert model.calls[0].messages[-1]["content"] == [
        {"type": "text", "text": "Fix the tests"},
        {"type": "text", "text": text},
    ]
    assert (await in_thread(Session.objects.get)).title == "Fix the tests"


async def test_a_reminder_before_a_command_does_not_hide_it(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    reminder, command = ({"role": "user", "content": text} for text in (REMINDER, "/memory help"))
    assert "/memory view" in (await ask(alice_api, reminder, command)).text
    assert not model.calls


def test_many_unclosed_tags_take_linear_time() -> None:
    began = time.monotonic()
    own_words("<think>" * 200_000)
    own_words("<think></thinking>" * 100_000)
    assert time.monotonic() - began < 5


def test_a_title_starts_with_the_persons_words() -> None:
    assert title_of(f"{REMINDER}\n\nFix the  tests") == "Fix the tests"
    assert title_of(REMINDER).startswith("<system-reminder>")


async def test_a_session_title_ignores_wrappers(alice_api: Api, agent: Agent, model: ScriptedModel) -> None:
    model.script("Done.")
    await ask(alice_api, {"role": "user", "content": f"{REMINDER}\nFix the tests"})
    assert (await in_thread(Session.objects.get)).title == "Fix the tests"


@pytest.mark.parametrize(
    "wrapped",
    [
        "<system-reminder>The harbour needs a chart, a pilot and a tug.</system-reminder>\n{}",
        "### Task:\nAnswer.\n<context><source>The harbour needs a chart, a pilot and a tug.</source></context>\n\n{}",
    ],
)
async def test_memory_is_searched_with_the_persons_words(
    alice_api: Api, alice: Owner, model: ScriptedModel, wrapped: str
) -> None:
    """Text added by the client is not used for the search."""

    def prepare() -> None:
        agent_make(frozen_char_limit=0)
        memory_make(alice, "Is allergic to hazelnuts.", target="memory")
        memory_make(alice, "Works as a pilot in the harbour, with a chart and a tug.", target="memory")

    await in_thread(prepare)
    model.script("No.")
    await ask(alice_api, {"role": "user", "content": wrapped.format("May I serve hazelnuts?")})
    injected = str(model.calls[0].messages[:-1])
    assert "allergic to hazelnuts" in injected
    assert "Works as a pilot" not in injected

"""What clients write around a person's message, or send in the person's place: rules, summaries, files, and the output
of code. Used to find the person's own words (memories.evidence.own_words, gateway.runs.wrappers). Every pattern is
linear in the length of the text."""

import re
from dataclasses import dataclass

from memories.evidence.framework_prompts import WRITTEN_BY_FRAMEWORKS, framed_span

# What clients append to a message: instructions (aider for edits, Open WebUI for running code, Cline for calling a
# tool, Genkit, Instructor and LlamaIndex for the form of the answer).
_TRAILING_RULES = re.compile(
    r"^# (?:\*SEARCH/REPLACE block\*|V4A Diff Format) Rules:[ \t]*$"
    r"|^# File editing rules:\n\nReturn edits similar to unified diffs"
    r"|^To suggest changes to a file you MUST return the entire content of the updated file\.\nYou MUST use this "
    r"|^#### Code Interpreter\n\nYou have access to a Python code interpreter via:"
    r"|^\[SYSTEM\] This run is not complete until you call one of these terminal completion tools: [^\n]{1,2000} call "
    r"the appropriate terminal completion tool now\.\s*\Z"
    r"|^Return the correct JSON response within a ```json codeblock\. not the JSON_SCHEMA\s*\Z"
    r"|^Here's a JSON schema to follow:\n\{[^\n]*+\n\nOutput a valid JSON object but do not repeat the schema\.\s*\Z"
    r"|^Output should be (?:in JSON format and|a JSON array|JSONL format, [^\n]{1,200}) conform(?:ing)? to the "
    r"following schema:\s{1,9}```\n[^\n]*+\n```\s*\Z"
    r"|^Output should be ONLY one of the following enum values\. Do not output any additional information or add "
    r"quotes\.$",
    re.MULTILINE,
)
# What Agno has found, up to the end of the message
_FOUND = re.compile(
    r"^(?:<additional context>\n|Use the following references from the knowledge base if it helps:\n<references>)",
    re.MULTILINE,
)
_FOUND_ENDS = "</additional context>", "</references>"
# The line that Claude Code writes where the person has stopped it
INTERRUPTION = r"\[Request interrupted by user(?: for tool use)?\]"
_INTERRUPTION = re.compile(rf"^{INTERRUPTION}[ \t]*(?:\n|\Z)", re.MULTILINE)
# Messages that clients write themselves and send as the user: files and examples (aider), descriptions of the
# environment (Gemini CLI, Qwen Code), command output (aider, Open Interpreter, AutoGen), a tool's pictures (Agno) or
# result (Griptape, OpenHands, Continue, LangChain's conversational agent), what other agents did (Google's ADK).
_WRITTEN_BY_CLIENTS = re.compile(
    "|".join(
        (
            r"# AGENTS\.md instructions",
            rf"{INTERRUPTION}\s*\Z",
            r"(?:I have|These files have been) \*added these files to the chat\*",
            r"Here are some READ ONLY files, provided for your reference\.",
            r"(?:I am working with you on code in a git repository\.\n)?Here are summaries of some files present in ",
            r"I am not sharing (?:any files that you can edit|the full contents of any files with you) yet\.",
            r"Don't try and edit any existing code without asking me to add the files to the chat!",
            r"I switched to a new code base\. Please don't consider the above files",
            r"(?:Change get_factorial\(\) to use math\.factorial|Refactor hello\(\) into its own file\."
            r"|Replace is_prime with a call to sympy\.|Change the greeting to be more casual)\s*\Z",
            r"This is the (?:Gemini CLI|Qwen Code)\. We are setting up the context for our chat\.",
            r"# Fix any errors below, if possible\.\n",
            r"Here is the content of https?://\S{1,2000}:\n\n",
            r"I committed the changes with git hash [0-9a-f]{6,40} & commit msg: ",
            r"I ran this command:\n\n[^\n]{1,2000}\n\nAnd got this output:\n",
            r"The code above was executed on my machine\. It produced no text output\.",
            r"The tool call above generated the attached media\.\s*\Z",
            r"exitcode: -?\d{1,9} \(execution (?:succeeded|failed)\)\nCode output:",
            r"The script ran, then exited with an error \(POSIX exit code: -?\d{1,9}\)\nIts output was:\n",
            r"<\|Response\|>:",
            r"EXECUTION RESULT of \[[^\]\n]{1,200}\]:",
            r"Tool output for tool call \S{1,200} \([^)\n]{1,200}\):",
            r"TOOL RESPONSE:[ \t]*\n-{5}",
            r"For context:\s*(?:\Z|\[[^\]\n]{1,200}\] (?:said: |thought: |called tool `|`))",
            WRITTEN_BY_FRAMEWORKS,
        )
    )
)
_SUMMARISED = re.compile(
    r"\s*(?:I spoke to you previously about a number of things\.\n"
    r"|Another language model started to solve this problem and produced a summary"
    r"|This session is being continued from a previous conversation that ran out of context"
    r"|Here is a summary of the conversation to date:\s"
    r"|Previous conversation summary: "
    r"|The conversation so far has been compacted to free up context\. What follows is your own working summary )"
)
_OUTPUT_PREFIX, _OUTPUT_SUFFIX = (
    "Code output: ",
    "What does this output mean / what's next (if anything, or are we done)?",
)
# Tags in which clients wrap a person's message; their content is the person's own.
MESSAGE_TAGS = frozenset({"user_input", "user_message", "user_query", "task", "feedback"})
# Names of tags that clients write: camelCase or with a joint, as none of HTML's, and some common words.
CLIENT_TAG = r"[a-z]{2,20}[A-Z]\w{0,20}|[A-Za-z]{1,20}[_-][\w-]{1,20}|attachments?|context|documents?|files?"
# How a message with documents before the person's question begins, and the mark between them: Open WebUI, BeeAI
_WITH_CONTEXT = (
    (re.compile(r"\s*### Task:"), "</context>"),
    (
        re.compile(
            r"\s*This is the (?:context (?:relevant to the task|that you are working with)"
            r"|expected criteria for your output):\n"
        ),
        "\nYour task: ",
    ),
)
# What VS Code writes around a person's message, behind elements with the date, the state of the editor and reminders. A
# text with a second such tag may be a pasted one that imitates it.
_REQUEST_BEGINS = re.compile(
    rf"(?>\s*<(?!userRequest>)({CLIENT_TAG})(?:\s[^<>]{{0,300}})?>.*?</\1>)*+\s*<userRequest>(?!.*<userRequest>)",
    re.DOTALL,
)
_REQUEST_ENDS = "</userRequest>"
# Prompts with what a search has found and the person's question, before or behind it: LangChain, LlamaIndex, Haystack
_RETRIEVAL = re.compile(
    r"\s*(?:You are an? [^\n.]{1,200}\.\s{1,9})?(?:Us(?:e|ing)|Given|Based on|Answer)\b[^\n.]{0,80}"
    r"\b(?:contexts?|documents|information)\b"
    r"|\s*Context information\b|\s*You are an expert Q&A system that strictly operates in two modes",
    re.IGNORECASE,
)
# Without a mark at the end, what is asked for and a label before what was found: people write "based on this
# information: I am vegan", too.
_RETRIEVAL_ASKS = re.compile(r"\b(?:questions?|query|queries)\b", re.IGNORECASE)
_RETRIEVAL_FOUND = re.compile(
    r"^[ \t]*(?:contexts?|documents|information):|\b(?:contexts?|documents|information):[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_RETRIEVAL_QUESTION = re.compile(r"^[ \t]*(?:Question|Query):[ \t]*", re.MULTILINE)
_RETRIEVAL_OTHER = re.compile(r"^[ \t]*(?:Contexts?|Documents|(?:\w{1,20} )?Answer):", re.MULTILINE | re.IGNORECASE)
# What opencode writes, in a part of its own, before the part with the text of a file or of an MCP server's resource
ANNOUNCEMENT = (
    r"Reading MCP resource: [^\n]{1,500} \([^\n]{1,2000}\)"
    r"|Called the \w{1,20} tool with the following input: [^\n]{1,4000}"
)
_ANNOUNCEMENT = re.compile(rf"\s*(?:{ANNOUNCEMENT})\s*")
# The output of code in smolagents, and what it puts between that and a person's next message
_NEXT_TASK = "\nNew task:\n"
_CODE_OUTPUT = re.compile(
    r"Observation:\nExecution logs:"
    r"|(?:Call id: call_\w{1,64}\n)?Error:\n(?:Error in code parsing|Code execution failed)"
)
_LAST_OUTPUT = "\nLast output from code snippet:\n"  # ends the output
_LAST_STEP = re.compile(r"\bfinal_answer\(")
# Calls that a model writes as text for its client, and what begins the result: ReAct (LlamaIndex, LangChain, crewAI;
# BeeAI has other words, which programmers also use, and an object behind them)
_REACT_CALL = re.compile(r"^[ \t*]*(?:Action(?: \d{1,3})?:|Function Input:\s{0,9}\{)", re.MULTILINE)
_REACT_INPUT = re.compile(r"^[ \t*]*(?:Action Input(?: \d{1,3})?:|Function Input:\s{0,9}\{)", re.MULTILINE)
_REACT_RESULT = re.compile(r"^[ \t*]*(?:Observation(?: \d{1,3})?|Function Output):", re.MULTILINE)
# LangChain's prompts contain an example of both, then the person's message, and behind it the calls and results so far.
_REACT_PROMPT_END, _REACT_STEPS = "\nBegin!", "\nThought:"
_REACT_QUESTION = re.compile(r"^(?:Question|New input):[ \t]?", re.MULTILINE)
# Langroid sends the result of such a call without any mark.
_JSON_CALL = re.compile(r"\{\s*\"request\"\s*:\s*\"[A-Za-z_]\w{0,99}\"")


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """Whether an answer has a call as text: in ReAct's form, or as JSON at its end; and whether its code is the last of
    a task (smolagents)."""

    react: bool = False
    as_json: bool = False
    is_last_step: bool = False

    @classmethod
    def of(cls, answer: str) -> "WrittenCall":
        """Return what calls a model's answer has."""
        ends = answer.rstrip("`\n ").endswith("}")
        is_last_step = bool(_LAST_STEP.search(answer))
        return cls(bool(_REACT_CALL.search(answer)), ends and bool(_JSON_CALL.search(answer)), is_last_step)

    def is_answered_by(self, text: str) -> bool:
        """Return True if a user message after the answer contains the result of its call. The output of code may also
        contain the words of a next task, which follows only the last step."""
        if _NEXT_TASK in text and _CODE_OUTPUT.match(text):
            return not self.is_last_step
        return self.react if _REACT_RESULT.match(text.lstrip()) else self.as_json


def written_results_start(text: str) -> int:
    """Return where the results of calls begin that a client wrote into a text behind the calls. Return the length of a
    text that contains none."""
    call = _REACT_INPUT.search(text)
    result = _REACT_RESULT.search(text, call.end()) if call else None
    return result.start() if result else len(text)


def is_written_by_client(text: str) -> bool:
    """Return True if a client wrote the whole message and sent it as the user."""
    said = text.strip()
    if _CODE_OUTPUT.match(said):
        return _NEXT_TASK not in said
    return bool(_WRITTEN_BY_CLIENTS.match(said)) or (said.startswith(_OUTPUT_PREFIX) and said.endswith(_OUTPUT_SUFFIX))


def announces_text(text: str) -> bool:
    """Return True for a content part with which a client announces that the next ones are not the person's words."""
    return bool(_ANNOUNCEMENT.fullmatch(text))


def begins_with_summary(text: str) -> bool:
    """Return True if a message begins with a summary by a model that a client sends as the user: aider, Codex, Claude
    Code, LangChain, Flowise, Kimi Code. The person's next words may follow in it, so `is_written_by_client` does not
    include these."""
    return bool(_SUMMARISED.match(text))


def react_prompt_end(text: str, *, last: bool = False) -> int:
    """Return where LangChain's prompt for calls as text ends and the person's message follows, or -1."""
    end = text.rfind(_REACT_PROMPT_END) if last else text.find(_REACT_PROMPT_END)
    return end if end >= 0 and written_results_start(text) < end else -1


def question_span(text: str, *, other: bool = False) -> tuple[int, int]:
    """Return the span of the person's own message after Open WebUI's or BeeAI's documents, VS Code's context or
    smolagents' output of code, or within LangChain's prompt for calls as text or a prompt with what a search has found.
    Any other message is the person's own as a whole.

    The mark before it may occur several times, since documents and pasted texts may contain it, too. With `other` it is
    taken at the opposite end: the first one instead of the last, or in LangChain's prompt the last one."""
    whole = 0, len(text)
    latest = text.find if other else text.rfind
    if text.rstrip().endswith(_REQUEST_ENDS) and (request := _REQUEST_BEGINS.match(text)):
        return request.end(), text.rfind(_REQUEST_ENDS)
    if framed := framed_span(text, other=other):
        return framed
    if _CODE_OUTPUT.match(text):
        at = latest(_NEXT_TASK)
        if at >= 0 and _LAST_OUTPUT in text[at:]:  # the mark was printed
            return len(text), len(text)
        return (at + len(_NEXT_TASK), len(text)) if at >= 0 else whole
    if (prompt_end := react_prompt_end(text, last=other)) >= 0:
        question = _REACT_QUESTION.search(text, prompt_end)
        steps = text.find(_REACT_STEPS, question.end()) if question else 0
        return (question.end(), steps if steps >= 0 else len(text)) if question else whole
    if (
        _RETRIEVAL.match(text)
        and (asked := [match.end() for match in _RETRIEVAL_QUESTION.finditer(text)])
        and (text.rstrip().casefold().endswith("answer:") or _introduces_found(text[: asked[0]]))
    ):
        begins = asked[0 if other else -1]
        ends = _RETRIEVAL_OTHER.search(text, begins)
        return begins, ends.start() if ends else len(text)
    mark = next((mark for begins_with, mark in _WITH_CONTEXT if begins_with.match(text)), "")
    at = latest(mark) if mark else -1
    return (at + len(mark), len(text)) if at >= 0 else whole


def _introduces_found(text: str) -> bool:
    """Return True if the text before a question says how to answer it, with a label before what a search has found."""
    found = _RETRIEVAL_FOUND.search(text)
    return bool(found and _RETRIEVAL_ASKS.search(text, 0, found.end()))


def without_interruptions(text: str) -> str:
    """Return a message without the lines in which a client notes that the person has stopped it."""
    return _INTERRUPTION.sub("", text)


def without_rules(text: str) -> str:
    """Return a message without the instructions that a client appended to it."""
    added = [_TRAILING_RULES.search(text), _FOUND.search(text) if text.rstrip().endswith(_FOUND_ENDS) else None]
    return text[: min((match.start() for match in added if match), default=len(text))]

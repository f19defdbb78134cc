"""Prompts into which agent frameworks write a person's words, and messages that they write themselves: DSPy, crewAI,
smolagents, AutoGen, Instructor, pydantic-ai. Every pattern is linear in the length of the text."""

import re

Span = tuple[int, int]

# DSPy: a mark before each field of the request, in XML also one behind it, and at the end which fields to answer with.
# A message without the end is an example. Any field but these may contain a document.
_FIELD = re.compile(r"^(?:\[\[ ## (?P<mark>\w{1,60}) ## \]\]|<(?P<tag>\w{1,60})>|</\w{1,60}>)[ \t]*$", re.MULTILINE)
_FIELDS_BEGIN = re.compile(r"\s*(?:\[\[ ## \w{1,60} ## \]\]|<\w{1,60}>)[ \t]*\n")
_FIELDS_END = (
    "\n\nRespond with the corresponding output fields",
    "\n\nRespond with a JSON object in the following order of fields: ",
)
_ASKED = re.compile(
    r"(?:(?:user|human|current|latest|last|new|original)_)?"
    r"(?:question|query|request|message|prompt|instructions?|task|input|utterance|problem|goal)",
    re.IGNORECASE,
)
# crewAI: the task, behind it what its developer expects, and the answers to other tasks
_TASK_ENDS = (
    r"\n(?:This is the expected criteria for your final answer: |This is the context you're working with:\n"
    r"|# Memories from past conversations:\n|Format your final answer according to the following OpenAPI schema: "
    r"|Begin! This is VERY important to you|Provide your complete response:|### Previous attempt failed validation: )"
    r"|\Z"
)
# What is written before and behind a person's message: crewAI, smolagents, BeeAI, AutoGen's Magentic-One
_FRAMES = tuple(
    (re.compile(rf"\s*(?:{before})"), re.compile(behind))
    for before, behind in (
        (r"\nCurrent Task: ", _TASK_ENDS),  # people's own text, and most pages, do not begin with an empty line
        (r"You got human feedback on your work, re-evaluate it and give a new Final Answer when ready\.\n", r"\Z"),
        (
            r"User feedback: ",
            r"\nInstructions: Use this feedback to enhance the next output iteration\.\nNote: [^\n]*+\s*\Z",
        ),
        (r"New task:\n", r"\Z"),
        (r"Message: ", r"\n\nThis message was created at [\d:.TZ-]{10,30}\s*\Z"),
        (r"Based on the above, please provide an answer to the following user task:\n", r"\Z"),
        (
            r"We are working on the following task:\n",
            r"\n\nWe have completed the task\.\n\nThe above messages [^\n]++(?:\s++Based on [^\n]++\n[^\n]++)?\s*\Z",
        ),
    )
)
# Messages that frameworks write themselves: why an answer is not accepted, which may quote it, and what to do next
WRITTEN_BY_FRAMEWORKS = "|".join(
    (
        rf"\[\[ ## \w{{1,60}} ## \]\][ \t]*\n(?!(?s:.*)(?:{'|'.join(map(re.escape, _FIELDS_END))})[^\n]*\s*\Z)",
        r"This is an example of the task, though some input or output fields are not supplied\.\s",
        # a task that a crew's or smolagents' manager, which is a model, has written
        r"Current Task: (?s:.*?)\n\nThis is the expected criteria for your final answer: Your best answer to your "
        r"coworker asking you this, accounting for the context shared\.",
        r"New task:\nYou're a helpful agent named '[^'\n]{1,200}'\.\nYou have been submitted this task by your",
        r"Analyze the tool result\. If requirements are met, provide the Final Answer\. Otherwise, call the next",
        r"Now it's time you MUST give your absolute best final answer\. You'll ignore all previous instructions,",
        r"Sorry, I didn't use the right format\. I MUST either use a tool \(among the available ones\),",
        r"(?:Call id: call_\w{1,64}\n)?Error:\n(?s:.*)\nNow let's retry: take care not to repeat previous errors! If",
        r"Correct your JSON (?:ONLY RESPONSE|response: (?s:.*)), based on the following errors:\n",
        r"(?:Validation Errors? found:|\d{1,4} validation errors? for )(?s:.*)\nRecall the function correctly, fix",
        r"Recall the function correctly, fix the errors(?:\Z|(?: and|,) exceptions found\n)",
        r"(?:Validation feedback|\d{1,4} validation errors?):\n(?s:.*)\n\nFix the errors and try again\.\Z",
    )
)


def framed_span(text: str, *, other: bool) -> Span | None:
    """Return the span of a person's message within a framework's prompt, an empty one if only documents are in it, or
    None for any other text. `other`: if DSPy's prompt asks several times, the first instead of the last."""
    for before, behind in _FRAMES:
        if (begins := before.match(text)) and (ends := behind.search(text, begins.end())):
            return begins.end(), ends.start()
    ends_at = max(map(text.rfind, _FIELDS_END))
    if ends_at < 0 or "\n" in text[ends_at:].strip() or not _FIELDS_BEGIN.match(text):
        return None
    marks = list(_FIELD.finditer(text, 0, ends_at))
    asked = [at for at, mark in enumerate(marks) if _ASKED.fullmatch(mark["mark"] or mark["tag"] or "")]
    if not asked:
        return len(text), len(text)
    chosen = asked[0 if other else -1]
    return marks[chosen].end(), marks[chosen + 1].start() if chosen + 1 < len(marks) else ends_at

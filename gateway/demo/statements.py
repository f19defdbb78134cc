"""Finds plain statements about a person for the demo model. English only, and deliberately few patterns: the demo shows
how memories are made and does not try to find everything worth remembering."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MAX_CHARS = 8000
_MAX_SENTENCE_CHARS = 300
# Code blocks and quoted lines are not the person's own words.
_QUOTED = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>.*$", re.DOTALL | re.MULTILINE)
# "I'm this and I prefer that" and "I'm this, what could I do?" are two sentences each.
_SENTENCE_END = re.compile(
    r"(?<=[.!?…])\s+|[;\n]+|,? and (?=(?:I (?:am|prefer|like|live|work)|I'm|my \w+ is)\b)"
    r"|, (?=(?:what|how|which|where|can|could)\b)",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:(?:hi|hello|hey|oh|well|also|and|but|so|actually|by the way|please)\b[,!]? +)+", re.IGNORECASE
)
# A lookahead that excludes temporary states after "I'm".
_NOT_TEMPORARY = (
    r"(?!(?:not|so|very|too|just|sorry|sure|glad|happy|sad|tired|hungry|bored|busy|late|lost|stuck|ready|here|back|afraid"
    r"|curious|interested|going|about|on|in|at|\w+ing)\b)"
)
# A request to remember what follows. "Remember that, please" refers to another sentence and does not match.
_REMEMBER = re.compile(
    r"remember (?!(?:(?:all )?(?:this|that|it|them|me)|please)\W*(?:please|for me|about me)?\W*$)(?:that |this[:,] )?",
    re.IGNORECASE,
)
_TEMPORARY = re.compile(r"\b(?:today|tonight|tomorrow|right now)\b", re.IGNORECASE)
# Pattern of a sentence, text of the memory, category, and target; the first match counts.
_FORMS = tuple(
    (re.compile(pattern + r"(?:,? please)?[.!…,\s]*", re.IGNORECASE), note, category, target)
    for pattern, note, category, target in (
        (r"call me (?P<x>[\w' -]{2,40})", "Wants to be called {x}.", "identity", "user"),
        ("(?:I'm|I am) " + _NOT_TEMPORARY + "(?P<x>.{2,120}?)", "Is {x}.", "fact", "user"),
        (r"I (?:prefer|like|love) (?P<x>.{3,120}?)", "Prefers {x}.", "preference", "user"),
        (r"I (?:don't like|dislike|hate) (?P<x>.{3,120}?)", "Dislikes {x}.", "preference", "user"),
        (r"I live in (?P<x>.{2,80}?)", "Lives in {x}.", "fact", "user"),
        (r"I work (?P<x>(?:as|at|for) .{2,80}?)", "Works {x}.", "fact", "user"),
        (r"my (?P<x>[\w' -]{2,40} is .{2,100}?)", "Their {x}.", "fact", "user"),
        (r"(?:in this project )?we use (?P<x>.{2,120}?)", "They use {x}.", "convention", "memory"),
        (r"(?P<x>.{4,160}?)", "{x}.", "note", "user"),  # only after "remember"
    )
)
_THIRD_PERSON = ((re.compile(r"\bmy\b", re.IGNORECASE), "their"), (re.compile(r"\b(?:I'm|I am)\b"), "they are"))
# Words in a statement, and related words that a later message might use.
_TOPICS = (
    ({"lives", "home", "address"}, ("home", "place", "city", "where")),
    ({"works", "job"}, ("job", "career", "office", "profession")),
    ({"vegetarian", "vegan", "allergic", "food", "eat", "tea", "coffee"}, ("food", "diet", "recipe", "dinner", "cook")),
    ({"answers", "answer", "replies", "short", "brief"}, ("style", "length", "format", "tone")),
    ({"sister", "brother", "daughter", "son", "wife", "husband", "partner"}, ("family", "relatives", "gift")),
    ({"dog", "cat", "pet"}, ("animal", "pet", "vet", "walk")),
    ({"called", "name"}, ("name", "address", "greeting")),
    ({"project", "use", "deploy", "tests"}, ("setup", "tools", "convention", "workflow")),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A lasting statement of a person: the text to save, and the sentence it was taken from (`said`)."""

    content: str
    category: str
    target: str
    said: str

    def arguments(self) -> dict[str, object]:
        """Return the arguments of the `add_memory` call that saves it."""
        words = set(re.findall(r"\w+", self.content.casefold()))
        related = dict.fromkeys(word for topic, others in _TOPICS if topic & words for word in others)
        keywords = [word for word in related if word not in words]
        return {
            "content": self.content,
            "target": self.target,
            "category": self.category,
            "keywords": keywords,
            "evidence": self.said,
        }


def statements(text: str) -> Iterator[Statement]:
    """Yield the plain statements of a message in their order, without questions and temporary states."""
    text = _QUOTED.sub("\n", text[:_MAX_CHARS].replace("’", "'"))
    for sentence in _SENTENCE_END.split(text):
        sentence = _OPENING.sub("", sentence.strip()[:_MAX_SENTENCE_CHARS], count=1)
        if sentence.endswith("?") or _TEMPORARY.search(sentence):
            continue
        requested = _REMEMBER.match(sentence)
        said = sentence[requested.end() :] if requested else sentence
        for pattern, note, category, target in _FORMS if requested else _FORMS[:-1]:
            if match := pattern.fullmatch(said):
                content = note.format(x=_third_person(match["x"]))
                yield Statement(content[0].upper() + content[1:], category, target, sentence)
                break


def _third_person(said: str) -> str:
    for pattern, word in _THIRD_PERSON:
        said = pattern.sub(word, said)
    return said

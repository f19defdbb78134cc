"""Finds plain statements about a person for the demo model. English only, and deliberately few: the demo shows how
memories are made; it does not try to find everything worth keeping."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MOST_READ = 8000
_LONGEST_SENTENCE = 300
# Code blocks and quoted lines are somebody else's words.
_NOT_THEIRS = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>.*$", re.DOTALL | re.MULTILINE)
# "I'm this and I prefer that" and "I'm this, what could I do?" are two sentences each.
_SENTENCE_END = re.compile(
    r"(?<=[.!?…])\s+|[;\n]+|,? and (?=(?:I (?:am|prefer|like|live|work)|I'm|my \w+ is)\b)"
    r"|, (?=(?:what|how|which|where|can|could)\b)",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:(?:hi|hello|hey|oh|well|also|and|but|so|actually|by the way|please)\b[,!]? +)+", re.IGNORECASE
)
# What follows "I'm" and holds for a while only.
_PASSING = (
    r"(?!(?:not|so|very|too|just|sorry|sure|glad|happy|sad|tired|hungry|bored|busy|late|lost|stuck|ready|here|back|afraid"
    r"|curious|interested|going|about|on|in|at|\w+ing)\b)"
)
# What is to be remembered. "Remember that, please" asks to keep what stands in another sentence.
_REMEMBER = re.compile(
    r"remember (?!(?:(?:all )?(?:this|that|it|them|me)|please)\W*(?:please|for me|about me)?\W*$)(?:that |this[:,] )?",
    re.IGNORECASE,
)
_SHORTLY = re.compile(r"\b(?:today|tonight|tomorrow|right now)\b", re.IGNORECASE)
# How a sentence begins, how it is noted, category, target; the first that fits.
_FORMS = tuple(
    (re.compile(pattern + r"(?:,? please)?[.!…,\s]*", re.IGNORECASE), note, category, target)
    for pattern, note, category, target in (
        (r"call me (?P<x>[\w' -]{2,40})", "Wants to be called {x}.", "identity", "user"),
        ("(?:I'm|I am) " + _PASSING + "(?P<x>.{2,120}?)", "Is {x}.", "fact", "user"),
        (r"I (?:prefer|like|love) (?P<x>.{3,120}?)", "Prefers {x}.", "preference", "user"),
        (r"I (?:don't like|dislike|hate) (?P<x>.{3,120}?)", "Dislikes {x}.", "preference", "user"),
        (r"I live in (?P<x>.{2,80}?)", "Lives in {x}.", "fact", "user"),
        (r"I work (?P<x>(?:as|at|for) .{2,80}?)", "Works {x}.", "fact", "user"),
        (r"my (?P<x>[\w' -]{2,40} is .{2,100}?)", "Their {x}.", "fact", "user"),
        (r"(?:in this project )?we use (?P<x>.{2,120}?)", "They use {x}.", "convention", "memory"),
        (r"(?P<x>.{4,160}?)", "{x}.", "note", "user"),  # only if it is to be remembered
    )
)
_THEIR = ((re.compile(r"\bmy\b", re.IGNORECASE), "their"), (re.compile(r"\b(?:I'm|I am)\b"), "they are"))
# Words of a statement, and what a later message might say instead.
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
    """Something lasting that a person said: the words to save, and the words in which it was said."""

    content: str
    category: str
    target: str
    said: str

    def arguments(self) -> dict[str, object]:
        """Return the arguments of the `add_memory` call that saves it."""
        words = set(re.findall(r"\w+", self.content.casefold()))
        near = dict.fromkeys(word for topic, others in _TOPICS if topic & words for word in others)
        keywords = [word for word in near if word not in words]
        return {
            "content": self.content,
            "target": self.target,
            "category": self.category,
            "keywords": keywords,
            "evidence": self.said,
        }


def statements(text: str) -> Iterator[Statement]:
    """Return the plain statements of a message, in their order, without questions and passing states."""
    text = _NOT_THEIRS.sub("\n", text[:_MOST_READ].replace("’", "'"))
    for sentence in _SENTENCE_END.split(text):
        sentence = _OPENING.sub("", sentence.strip()[:_LONGEST_SENTENCE], count=1)
        if sentence.endswith("?") or _SHORTLY.search(sentence):
            continue
        asked = _REMEMBER.match(sentence)
        said = sentence[asked.end() :] if asked else sentence
        for pattern, note, category, target in _FORMS if asked else _FORMS[:-1]:
            if match := pattern.fullmatch(said):
                content = note.format(x=_third_person(match["x"]))
                yield Statement(content[0].upper() + content[1:], category, target, sentence)
                break


def _third_person(said: str) -> str:
    for pattern, word in _THEIR:
        said = pattern.sub(word, said)
    return said

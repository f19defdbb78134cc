"""What a person says that holds for longer: plain statements about themselves, standing wishes and habits, how their
tools and work are set up, and what has changed. Rules for English; what they leave out is in left_alone.py."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gateway.demo import cues, left_alone
from memories.search.tokens import tokens_of

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？؟])\s+|;\s+|\n+")
# "I'm this and I prefer that"; "I'm this, what shall I do?"
_TWO = re.compile(
    r",? and (?=(?:I (?:prefer|like|love|hate|live|work)|I'm|my \w+ is)\b)"
    r"|, (?:so |and )?(?=(?:what|how|can|could|which|where|do|does|should|any)\b[^.!?]*\?)",
    re.IGNORECASE,
)
_PRONOUNS = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"\b(?:I'm|I am|[Ww]e're|[Ww]e are)\b", "they are"),
        (r"\b(?:I was|[Ww]e were)\b", "they were"),
        (r"\b(?:I've|[Ww]e've)\b", "they have"),
        (r"\b(?:I'll|[Ww]e'll)\b", "they will"),
        (r"\b(?:I|[Ww]e)\b", "they"),
        (r"\b(?:[Mm]y|[Oo]ur)\b", "their"),
        (r"\b(?:me|us)\b", "them"),
        (r"\b(?:mine|ours)\b", "theirs"),
        (r"\b(?:myself|ourselves)\b", "themselves"),
        (r"\b[Yy]our\b", "the assistant's"),
        (r"\b[Yy]ou\b", "the assistant"),
    )
)
_NOW = re.compile(r"(?<!from) ?\bnow\b,?(?! on\b)")
_ORDER_WORDS = {"don't": "not ", "do not": "not ", "never": "never ", "always": "always "}
_SHORT = 4
_MOST_HEARD = 8000
_LONGEST_SENTENCE = 400
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Statement:
    """Something lasting. `rank`: 0 corrections and wishes, 1 facts, 2 procedures; `change`: it was otherwise before;
    `alone`: worth keeping also where it corrects nothing that is stored."""

    content: str
    target: str
    category: str
    rank: int
    change: bool = False
    alone: bool = True


@dataclass(slots=True)
class Listener:
    """Hears a person's messages in their order; knows whether a game is on and whether rules were announced."""

    in_game: bool = False
    announced: bool = False

    def hear(self, text: str) -> list[Statement]:
        """What a message says that is lasting."""
        text = text[:_MOST_HEARD].replace("’", "'")
        game = left_alone.opens_game(text)
        self.in_game = (self.in_game or game) and not left_alone.ends_game(text)
        if self.in_game or game or left_alone.is_planted(text):
            return []
        found: list[Statement] = []
        announces = False
        for sentence in sentences_of(left_alone.own_words(text)):
            announces = announces or bool(cues.ANNOUNCED.search(sentence))
            told = announces or self.announced
            said = _statement(sentence, announced=told) if len(sentence) <= _LONGEST_SENTENCE else None
            if said is None:
                continue
            if found and said.category == "wish" and terms(said.content) & terms(found[-1].content):
                # "We do it so. Please don't suggest the other way": two halves of one thing.
                joined = f"{found[-1].content} {said.content}"
                found[-1] = replace(found[-1], content=joined[:_LONGEST], rank=0)
            else:
                found.append(said)
        self.announced = announces or (self.announced and bool(found))
        return found


def terms(text: str) -> set[str]:
    """The stems of a text's words that say something."""
    return {token.term for token in tokens_of(text)}


def sentences_of(text: str) -> Iterator[str]:
    """Sentences; a fragment such as "Always." and a step that begins with "Then" stay with what they are about."""
    waiting = ""
    for sentence in _SENTENCE_END.split(_TWO.sub(". ", text)):
        lead, colon, rest = sentence.strip().lstrip("-*• ").partition(": ")
        if colon and rest and cues.ANNOUNCED.search(lead):
            yield from (piece for piece in (waiting, lead) if piece)
            waiting, sentence = "", rest
        else:
            sentence = lead + colon + rest
        if waiting and (_is_afterthought(sentence) or cues.CONTINUES.match(sentence) or _is_change(waiting)):
            waiting = f"{waiting} {sentence}"
            continue
        if waiting:
            yield waiting
        waiting = sentence
    if waiting:
        yield waiting


def _is_afterthought(sentence: str) -> bool:
    order = cues.ORDER.match(sentence) and not cues.NO_ORDER.match(sentence)
    return len(sentence.split()) <= _SHORT and bool(cues.LASTING.search(sentence)) and not order


def _is_change(fragment: str) -> bool:
    return len(fragment.split()) <= _SHORT and bool(cues.CHANGE.search(unopened(fragment)))


def unopened(sentence: str) -> str:
    """A sentence without "Oh, by the way, " and the like."""
    return cues.OPENER.sub("", sentence, count=1) if cues.OPENER.match(sentence) else sentence


def _statement(sentence: str, *, announced: bool) -> Statement | None:
    said = sentence if sentence.casefold().startswith("remember") else unopened(sentence)
    if left_alone.is_never_kept(said):
        return None
    change = bool(cues.CHANGE.search(said)) and not left_alone.is_of_others(said)
    if plain := _plain(said, change):
        return plain
    said = _without_tail(said)
    if change:
        said = _NOW.sub("", said)
    elif left_alone.is_passing(said):
        return None
    if left_alone.is_of_others(said) or len(terms(said)) < 2:
        return None
    return _in_own_words(said, corrects=bool(cues.CORRECTS.match(sentence)), change=change, announced=announced)


def _in_own_words(said: str, *, corrects: bool, change: bool, announced: bool) -> Statement | None:
    work = bool(cues.WORK.search(said))
    personal = bool(cues.PERSONAL.search(said))
    stands = bool(cues.STANDS.search(said))
    named = stands and (work or cues.OURS.search(said)) and cues.NAMED.search(said) and not cues.TROUBLE.search(said)
    order = bool(cues.ORDER.match(said))
    if left_alone.is_event(said) and not (change or personal):
        return None
    if not order and (said.endswith("!") or (cues.TO_YOU.search(said) and not cues.ASKED_OF_YOU.search(said))):
        return None
    lasting = (order or work or cues.FIRST.search(said)) and cues.LASTING.search(said)
    told = announced and (stands or order or cues.LASTING.search(said)) and not cues.ANNOUNCED.search(said)
    if not (lasting or personal or named or told):
        # A change alone says too little to be kept; it may correct what is stored.
        return Statement(third_person(said), "user", "fact", 0, change=True, alone=False) if change else None
    work = work or bool(cues.TOGETHER.search(said))
    target = "memory" if work and not personal else "user"
    if order:
        return Statement(third_person(said) if work else _wish(said), target, "wish", 0, change)
    if corrects and not personal:
        category, rank = "correction", 0
    elif change:
        category, rank = "convention" if work else "preference", 0
    elif personal or named or told:
        category, rank = "fact", 1
    else:
        category, rank = ("procedure", 2) if work else ("habit", 1)
    return Statement(third_person(said), target, category, rank, change)


def _plain(said: str, change: bool) -> Statement | None:
    """The first plain statement of a sentence."""
    found = [(match, note, category) for pattern, note, category in cues.PLAIN if (match := pattern.search(said))]
    traits = [one for one in found if not cues.NO_TRAIT.match(one[0]["x"].strip())]
    if not traits or left_alone.is_of_others(said):
        return None
    match, note, category = min(traits, key=lambda one: one[0].start())
    if left_alone.is_passing(_NOW.sub("", match[0]) if change else match[0]):
        return None
    x = _NOW.sub("", match["x"]) if change else match["x"]
    line = note.format(x=_their(cues.ASKS_NEXT.sub("", cues.TAIL.sub("", x))).strip().rstrip(",;:. "))
    rank = 0 if category in {"preference", "note", "identity"} else 1
    return Statement(line[0].upper() + line[1:], "user", category, rank, change)


def _without_tail(said: str) -> str:
    """A statement without what only follows from it ("…, so I need …"), unless that is lasting too."""
    tail = cues.TAIL.search(said)
    return said[: tail.start()] if tail and tail.start() and not cues.LASTING.search(tail[0]) else said


def third_person(said: str) -> str:
    """A sentence as it is noted: "We use it in our team" as "They use it in their team."."""
    said = _their(said).strip().rstrip(",;:")
    said = said[:_LONGEST] if said[-1:] in ".!" else f"{said[:_LONGEST]}."
    return said[0].upper() + said[1:]


def _wish(order: str) -> str:
    """An order to the assistant as it is noted: "Never use jargon" as "Wants the assistant never to use jargon."."""
    opened = cues.ORDER_WORD.match(order)
    word = (opened[1] or "").casefold() if opened else ""
    rest = third_person(order[opened.end() :] if opened else order)
    rest = rest[0].lower() + rest[1:]
    if word == "no":
        return f"Wants no {rest}"
    return f"Wants the assistant {_ORDER_WORDS.get(word, '')}to {rest}"


def _their(said: str) -> str:
    for pattern, word in _PRONOUNS:
        said = pattern.sub(word, said)
    return said

"""Splits the messages of a conversation into passages of one kind: where the person's own words end, where results of
tools begin, what is an answer that a client sent back, and what is remembered text."""

import html
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Any
from uuid import UUID

from memories.errors import InvalidRequest
from memories.evidence.client_texts import WrittenCall, written_results_start
from memories.evidence.own_words import Span, foreign_spans, merge_spans
from memories.evidence.quotes import folded, original_span
from memories.json_input import read_json
from memories.models import EvidenceKind
from prompts.memory import texts_in_blocks
from scanning.decoding import decoded_views
from scanning.rejoining import joined_view, rejoined_view
from scanning.respelling import respelled_views
from scanning.views import cleaned_view, folded_view, raw_view

# Clients send model answers back as user messages, as aider's architect mode does with a plan for another agent. Text
# found in such an answer does not count as the person's own.
MIN_ANSWER_CHARS = 24  # letters and digits; people also write shorter texts themselves
MAX_ANSWER_CHARS = 16_000  # only the first characters of a longer answer are compared
# The latest ones of a conversation, and of others, and as many texts in the calls of others: each is looked up in each
# message.
MAX_ANSWERS = 32
_TEXT_FIELDS = frozenset({"content", "text"})  # fields of tool results that contain remembered text
_DECODED = (EvidenceKind.OWN_WORDS, EvidenceKind.PASTED, EvidenceKind.TOOL)
# Shorter views of a text are of its encoded parts; others are the whole text, backwards or in rot13. Those of a long
# text would cost several times as much as the text itself.
_PART, _MAX_DECODED_WHOLE = 0.9, 20_000
_INNER_TAG = re.compile(r"(?<=\w)</?[A-Za-z][^<>]{0,200}>(?=\w)")
MAX_CONVERSATION_CHARS = 200_000  # only the newest part of a longer conversation is examined


class Speaker(StrEnum):
    """Where the text of a message comes from."""

    PERSON = "person"
    TOOL = "tool"
    ASSISTANT = "assistant"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """One message of a conversation, with the ids of where it is stored, if known."""

    speaker: Speaker
    text: str
    session_id: UUID | None = None
    run_id: UUID | None = None
    message_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a message with a single kind. `foreign`: neither written by the person nor taken from memory. `start`
    is None if the message has the text in an encoding."""

    kind: EvidenceKind
    foreign: bool
    text: str
    start: int | None
    utterance: Utterance


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    """A model answer in folded form. `foreign`: it may repeat foreign text. `truncated`: `key` is only its
    beginning."""

    key: str
    foreign: bool
    truncated: bool


def passages_of(utterances: Sequence[Utterance], answers: Sequence[str], *, foreign: bool = False) -> list[Passage]:
    """Return the newest messages, oldest first, split where the person's own words end and foreign text begins.
    `answers` are what models wrote in other conversations. `foreign`: the model has seen foreign text before or beside
    these messages, which its answers may repeat."""
    found: list[Passage] = []
    call = WrittenCall()  # of the latest answer
    elsewhere = [key for text in answers[: 2 * MAX_ANSWERS] if (key := _earlier_answer(text, foreign=True))]
    here: deque[EarlierAnswer] = deque(maxlen=MAX_ANSWERS)
    for utterance in newest(utterances):
        if utterance.speaker == Speaker.MEMORY:
            for text, ours in _recalled_words(utterance.text):
                foreign = foreign or not ours
                kind = EvidenceKind.RECALLED if ours else EvidenceKind.TOOL
                found.append(Passage(kind, not ours, text, 0, utterance))
        elif utterance.speaker == Speaker.PERSON and call.is_answered_by(utterance.text):
            foreign = True
            found.append(Passage(EvidenceKind.TOOL, True, utterance.text, 0, utterance))
        elif utterance.speaker == Speaker.PERSON:
            passages = _split_person_message(utterance, [*elsewhere, *here])
            foreign = foreign or any(passage.foreign for passage in passages)
            found += passages
        elif utterance.speaker == Speaker.ASSISTANT:
            answer = utterance.text
            call = WrittenCall.of(answer)
            results = written_results_start(answer)
            found.append(Passage(EvidenceKind.ASSISTANT, foreign, answer[:results], 0, utterance))
            found.append(Passage(EvidenceKind.TOOL, True, answer[results:], results, utterance))
            foreign = foreign or results < len(answer)
            if key := _earlier_answer(answer, foreign=foreign):
                here.append(key)
        else:
            foreign = foreign or bool(utterance.text)
            found.append(Passage(EvidenceKind.TOOL, True, utterance.text, 0, utterance))
    return [passage for passage in found if passage.text.strip()]


def decoded_passages(passages: Sequence[Passage]) -> Iterator[Passage]:
    """Yield what foreign text says in disguise, and what it or a message of a person says in an encoding such as
    base64, as foreign text: a model can read it, and nobody writes facts about themselves so. The newest first, of at
    most MAX_CONVERSATION_CHARS together."""
    left = MAX_CONVERSATION_CHARS
    for passage in reversed(passages):
        if passage.kind not in _DECODED:
            continue
        for text in readings_of(passage.text) if passage.foreign else _decoded(passage.text, 0):
            left -= len(text)
            if left < 0:
                return
            kind = passage.kind if passage.foreign else EvidenceKind.PASTED
            yield Passage(kind, True, text, None, passage.utterance)


def readings_of(text: str) -> Iterator[str]:
    """Yield what a text says in an encoding, and the text without its disguises."""
    return chain(_decoded(text, _MAX_DECODED_WHOLE), _undisguised(text))


def _decoded(text: str, max_whole: int) -> Iterator[str]:
    """Yield what parts of a text encode, and the whole text backwards or in rot13 if it has at most `max_whole`
    characters."""
    for view in decoded_views(raw_view(text)):
        if len(text) <= max_whole or len(view.text) < _PART * len(text):
            yield view.text


def _undisguised(text: str) -> Iterator[str]:
    """Yield a text without invisible characters, spaces or markup within words, and with letters instead of others that
    look like them, as far as it has any."""
    plain = folded_view(raw_view(text))
    views = (cleaned_view(raw_view(text)), joined_view(plain), rejoined_view(plain), *respelled_views(plain))
    yield from (view.text for view in views if view)
    if (unmarked := html.unescape(_INNER_TAG.sub("", text))) != text:
        yield unmarked


def _split_person_message(utterance: Utterance, answers: Sequence[EarlierAnswer]) -> list[Passage]:
    """Split a message of the person into their own words, foreign text, and model answers that a client sent back."""
    returned = _find_answers(utterance.text, answers)
    elsewhere = foreign_spans(utterance.text)
    repeated: list[Span] = []
    for start, end, answer in returned:
        mixed = any(begins < end and start < ends for begins, ends in elsewhere)
        (elsewhere if answer.foreign or mixed else repeated).append((start, end))
    spans = [(*span, EvidenceKind.PASTED) for span in merge_spans(elsewhere)]
    spans += [(*span, EvidenceKind.ASSISTANT) for span in repeated]
    found: list[Passage] = []
    at = 0
    for start, end, kind in sorted(spans):
        if start < at:
            continue
        found.append(Passage(EvidenceKind.OWN_WORDS, False, utterance.text[at:start], at, utterance))
        found.append(Passage(kind, kind == EvidenceKind.PASTED, utterance.text[start:end], start, utterance))
        at = end
    return [*found, Passage(EvidenceKind.OWN_WORDS, False, utterance.text[at:], at, utterance)]


def _earlier_answer(text: str, *, foreign: bool) -> EarlierAnswer | None:
    """Return the folded form used for matching, or None if the text is too short."""
    key = folded(text[:MAX_ANSWER_CHARS])
    return EarlierAnswer(key, foreign, len(text) >= MAX_ANSWER_CHARS) if len(key) >= MIN_ANSWER_CHARS else None


def _find_answers(text: str, answers: Sequence[EarlierAnswer]) -> list[tuple[int, int, EarlierAnswer]]:
    """Return `(start, end, answer)` for each answer that a message contains in full; of overlapping ones only the
    longest."""
    possible = [answer for answer in answers if len(answer.key) <= len(text)]
    key = folded(text) if possible else ""
    found: list[tuple[int, int, EarlierAnswer]] = []
    for answer in sorted(possible, key=lambda answer: -len(answer.key)):
        start = key.find(answer.key)
        end = start + len(answer.key)
        if start < 0 or any(begins < end and start < ends for begins, ends, _ in found):
            continue
        found.append((start, len(key) if answer.truncated else end, answer))
    return [(*original_span(text, start, end), answer) for start, end, answer in found]


def _recalled_words(text: str) -> list[tuple[str, bool]]:
    """Return each memory's text in an injected block or the result of a memory tool, and whether it is ours. Any other
    text is returned whole."""
    if text.startswith("{"):
        try:
            result = read_json(text)
        except InvalidRequest:
            return [(text, True)]
        if isinstance(result, dict) and "ok" in result:
            return [(words, True) for words in _remembered_texts(result)]
    return texts_in_blocks(text) or [(text, True)]


def _remembered_texts(value: Any) -> Iterator[str]:
    """Yield the remembered texts in a tool result, which is a flat list of memories or a document."""
    for entry in (value, *(row for member in value.values() if isinstance(member, list) for row in member)):
        if isinstance(entry, dict):
            yield from (entry[name] for name in _TEXT_FIELDS & entry.keys() if isinstance(entry[name], str))


def newest(utterances: Sequence[Utterance]) -> list[Utterance]:
    """Return the newest messages within MAX_CONVERSATION_CHARS; the oldest of these may be truncated."""
    left = MAX_CONVERSATION_CHARS
    kept: list[Utterance] = []
    for utterance in reversed(utterances):
        if left <= 0:
            break
        kept.append(utterance if len(utterance.text) <= left else replace(utterance, text=utterance.text[:left]))
        left -= len(utterance.text)
    return kept[::-1]

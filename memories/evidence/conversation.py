"""A conversation as evidence: who said what, where a quote occurs, and whose words are closest to a memory.
Pure, without queries. The cost is O(n log n) in the length of the text that is examined."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from uuid import UUID

from memories.evidence.answers import MAX_ANSWERS, EarlierAnswer, earlier_answer, find_answers
from memories.evidence.client_texts import is_result_of_written_call, written_results_start
from memories.evidence.own_words import Span, foreign_spans, merge_spans
from memories.evidence.quotes import find_parts, folded, original_span, quote_parts
from memories.evidence.recalled import recalled_words
from memories.evidence.support import (
    MemoryTerms,
    Window,
    closest_by_meaning,
    closest_by_terms,
    terms_of,
    vectors_of,
    windows_of,
)
from memories.models import Evidence, EvidenceKind
from prompts.memory import without_tags
from search.vectors import Floats

MAX_CONVERSATION_CHARS = 200_000  # only the newest part of a longer conversation is examined
MAX_QUOTE_CHARS = 300  # a longer quote is truncated when it is stored
MIN_FOREIGN_SHARE = 0.3
"""Share of a memory's terms that occur in foreign text and not in the person's words, from which on the memory is
attributed to the foreign text."""
MIN_OWN_SHARE = 0.34  # share of a memory's terms in the person's words; below it, meanings are compared as well
MIN_INSTRUCTION_SHARE = 0.5
"""Share of a memory's terms that one or two sentences of a client's instructions must contain for the memory to be
attributed to them. Higher than for other foreign text, since instructions are long and say general things."""
MAX_INSTRUCTION_CHARS = 50_000  # only the beginning of longer ones is examined
MIN_SIMILARITY = 0.4  # cosine of a sentence and a memory; below it, static vectors say nothing about their meaning


class Speaker(StrEnum):
    """Where the text of a message comes from."""

    PERSON = "person"
    ATTACHMENT = "attachment"
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
class _Passage:
    """A part of a message with a single kind. `foreign`: neither written by the person nor taken from memory."""

    kind: EvidenceKind
    foreign: bool
    text: str
    start: int
    utterance: Utterance


_KINDS = {
    Speaker.ATTACHMENT: EvidenceKind.PASTED,
    Speaker.TOOL: EvidenceKind.TOOL,
}
_SUPPORTING = (EvidenceKind.OWN_WORDS, EvidenceKind.ASSISTANT, EvidenceKind.RECALLED)
# If a quote occurs in several places, the first kind in this order wins.
_PRECEDENCE = list(EvidenceKind)


@dataclass
class Conversation:
    """The messages of a conversation, oldest first. `missed` counts quotes that were not found: the model gets one
    error, so that it can quote properly. `answers` are model answers from other conversations, which are not the
    person's own words if a client sends them as user messages. `instructions` are a client's texts for the model:
    system messages and descriptions of tools. They may repeat a page, or be those of a server the person does not
    know."""

    utterances: Sequence[Utterance] = ()
    missed: int = field(default=0, compare=False)
    answers: Sequence[str] = ()
    instructions: Sequence[str] = ()

    @cached_property
    def passages(self) -> list[_Passage]:
        """The messages, split where the person's own words end and foreign text begins."""
        found: list[_Passage] = []
        foreign = False  # whether foreign text came earlier, which a later answer may repeat
        answer = ""  # the latest one
        elsewhere = [key for text in self.answers[:MAX_ANSWERS] if (key := earlier_answer(text, foreign=True))]
        here: deque[EarlierAnswer] = deque(maxlen=MAX_ANSWERS)
        for utterance in _newest(self.utterances):
            if utterance.speaker == Speaker.MEMORY:
                texts = recalled_words(utterance.text)
                found += [_Passage(EvidenceKind.RECALLED, False, text, 0, utterance) for text in texts]
            elif utterance.speaker == Speaker.PERSON and is_result_of_written_call(utterance.text, answer):
                foreign = True
                found.append(_Passage(EvidenceKind.TOOL, True, utterance.text, 0, utterance))
            elif utterance.speaker == Speaker.PERSON:
                passages = _split_person_message(utterance, [*elsewhere, *here])
                foreign = foreign or any(passage.foreign for passage in passages)
                found += passages
            elif utterance.speaker == Speaker.ASSISTANT:
                answer = utterance.text
                results = written_results_start(answer)
                found.append(_Passage(EvidenceKind.ASSISTANT, foreign, answer[:results], 0, utterance))
                found.append(_Passage(EvidenceKind.TOOL, True, answer[results:], results, utterance))
                foreign = foreign or results < len(answer)
                if key := earlier_answer(answer, foreign=foreign):
                    here.append(key)
            else:
                foreign = True
                found.append(_Passage(_KINDS[utterance.speaker], True, utterance.text, 0, utterance))
        return [passage for passage in found if passage.text.strip()]

    @property
    def untrusted(self) -> bool:
        """Whether the conversation contains foreign text."""
        return any(passage.foreign for passage in self.passages)

    def prepare(self) -> None:
        """Compute what every look-up needs, so that it does not happen under a lock."""
        _ = self._folded, self._own_terms, self._foreign_rows, self._rows, self._instruction_windows

    def find_quote(self, quote: str) -> Evidence | None:
        """Return where a quote occurs, or None. The quote may include the tags around recalled memories."""
        return self._find_parts(quote_parts(quote)) or self._find_parts(quote_parts(without_tags(quote)))

    def _find_parts(self, parts: list[str]) -> Evidence | None:
        if not parts:
            return None
        found = []
        for passage, text in zip(self.passages, self._folded, strict=True):
            if place := find_parts(parts, text):
                found.append((_PRECEDENCE.index(passage.kind), passage, place))
        if found:
            _, passage, place = min(found, key=lambda match: match[0])
            return _evidence(passage, *original_span(passage.text, *place))
        # A quote that spans own and pasted words counts as pasted.
        for utterance in _newest(self.utterances):
            if utterance.speaker == Speaker.PERSON and (place := find_parts(parts, folded(utterance.text))):
                passage = _Passage(EvidenceKind.PASTED, True, utterance.text, 0, utterance)
                return _evidence(passage, *original_span(passage.text, *place))
        if place := find_parts(parts, folded(self._instructions.text)):
            return _evidence(self._instructions, *original_span(self._instructions.text, *place))
        return None

    def closest_foreign(self, content: str, *, previous: str = "") -> Evidence | None:
        """Return the foreign text that a memory is closer to than to the person's own words, or None if there is none.
        `previous` is the memory's content before the write, which counts as the person's own."""
        if not self._foreign and not self._instruction_windows:
            return None
        memory_terms = MemoryTerms.of(content)
        own = self._own_terms | terms_of(previous)
        coverage, window = closest_by_terms(memory_terms, self._foreign, without=own)
        if window and coverage >= MIN_FOREIGN_SHARE:
            return self._of_window(window)
        if memory_terms.coverage(own) < MIN_OWN_SHARE:
            for window in self._foreign:  # only names and numbers survive a translation
                if window.terms & memory_terms.names - own:
                    return self._of_window(window)
            far, place = closest_by_meaning(content, self._foreign_rows)
            near, _ = closest_by_meaning(content, self._rows[EvidenceKind.OWN_WORDS])
            before, _ = closest_by_meaning(content, vectors_of([previous]))
            if far >= MIN_SIMILARITY and far > max(near, before):
                return self._of_window(self._foreign[place])
            coverage, window = closest_by_terms(memory_terms, self._instruction_windows, without=own)
            if window and coverage >= MIN_INSTRUCTION_SHARE:
                return _evidence(self._instructions, window.start, window.end)
        return None

    def best_support(self, content: str) -> Evidence:
        """Return the text that supports a memory best, preferring the person's own words; of kind `none` if nothing
        supports it, and then untrusted if a part of the conversation was not examined."""
        memory_terms = MemoryTerms.of(content)
        for kind in _SUPPORTING:
            windows = self._windows(kind)
            coverage, window = closest_by_terms(memory_terms, windows)
            if window and coverage >= MIN_OWN_SHARE:
                return self._of_window(window)
            near, place = closest_by_meaning(content, self._rows[kind])
            if near >= MIN_SIMILARITY:
                return self._of_window(windows[place])
        # What was not examined may be foreign text.
        return Evidence(untrusted=sum(len(said.text) for said in self.utterances) > MAX_CONVERSATION_CHARS)

    @cached_property
    def _folded(self) -> list[str]:
        return [folded(passage.text) for passage in self.passages]

    @cached_property
    def _all_windows(self) -> list[Window]:
        return [window for at, passage in enumerate(self.passages) for window in windows_of(at, passage.text)]

    @cached_property
    def _foreign(self) -> list[Window]:
        return [window for window in self._all_windows if self.passages[window.passage].foreign]

    @cached_property
    def _foreign_rows(self) -> Floats:
        return vectors_of(self._texts(self._foreign))

    @cached_property
    def _instructions(self) -> _Passage:
        text = "\n".join(self.instructions)[:MAX_INSTRUCTION_CHARS]
        return _Passage(EvidenceKind.TOOL, True, text, 0, Utterance(speaker=Speaker.TOOL, text=text))

    @cached_property
    def _instruction_windows(self) -> list[Window]:
        return list(windows_of(0, self._instructions.text))

    @cached_property
    def _rows(self) -> dict[EvidenceKind, Floats]:
        return {kind: vectors_of(self._texts(self._windows(kind))) for kind in _SUPPORTING}

    @cached_property
    def _own_terms(self) -> frozenset[str]:
        return frozenset().union(*(window.terms for window in self._windows(EvidenceKind.OWN_WORDS)))

    def _windows(self, kind: EvidenceKind) -> list[Window]:
        return [window for window in self._all_windows if self.passages[window.passage].kind == kind]

    def _texts(self, windows: Sequence[Window]) -> list[str]:
        return [self.passages[window.passage].text[window.start : window.end] for window in windows]

    def _of_window(self, window: Window) -> Evidence:
        return _evidence(self.passages[window.passage], window.start, window.end)


def _split_person_message(utterance: Utterance, answers: Sequence[EarlierAnswer]) -> list[_Passage]:
    """Split a message of the person into their own words, foreign text, and model answers that a client sent back."""
    returned = find_answers(utterance.text, answers)
    elsewhere = foreign_spans(utterance.text)
    repeated: list[Span] = []
    for start, end, answer in returned:
        mixed = any(begins < end and start < ends for begins, ends in elsewhere)
        (elsewhere if answer.foreign or mixed else repeated).append((start, end))
    spans = [(*span, EvidenceKind.PASTED) for span in merge_spans(elsewhere)]
    spans += [(*span, EvidenceKind.ASSISTANT) for span in repeated]
    found: list[_Passage] = []
    at = 0
    for start, end, kind in sorted(spans):
        if start < at:
            continue
        found.append(_Passage(EvidenceKind.OWN_WORDS, False, utterance.text[at:start], at, utterance))
        found.append(_Passage(kind, kind == EvidenceKind.PASTED, utterance.text[start:end], start, utterance))
        at = end
    return [*found, _Passage(EvidenceKind.OWN_WORDS, False, utterance.text[at:], at, utterance)]


def _evidence(passage: _Passage, start: int, end: int) -> Evidence:
    text = passage.text[start:end]
    start += len(text) - len(text.lstrip())
    return Evidence(
        kind=passage.kind,
        quote=text.strip()[:MAX_QUOTE_CHARS],
        session_id=passage.utterance.session_id,
        run_id=passage.utterance.run_id,
        message_id=passage.utterance.message_id,
        # Recalled text was among tags or in JSON, so its position in the message is not known.
        start=None if passage.kind == EvidenceKind.RECALLED else passage.start + start,
        untrusted=passage.foreign,
    )


def _newest(utterances: Sequence[Utterance]) -> list[Utterance]:
    """Return the newest messages within MAX_CONVERSATION_CHARS; the oldest of these may be truncated."""
    left = MAX_CONVERSATION_CHARS
    kept: list[Utterance] = []
    for utterance in reversed(utterances):
        if left <= 0:
            break
        kept.append(utterance if len(utterance.text) <= left else replace(utterance, text=utterance.text[:left]))
        left -= len(utterance.text)
    return kept[::-1]

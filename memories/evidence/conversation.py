"""A conversation as evidence: who said what, where a quote stands, and whose words a memory is closest to.
Pure: nothing is looked up. What it costs is n log n in the text that is kept."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from uuid import UUID

from memories.evidence.answers import MOST, Answered, answered, answers_in
from memories.evidence.own_words import Span, foreign_spans, merged
from memories.evidence.quotes import find_parts, folded, parts_of, unfolded
from memories.evidence.recalled import recalled_words
from memories.evidence.support import (
    Wanted,
    Window,
    closest_in_meaning,
    closest_in_words,
    terms_of,
    vectors_of,
    windows_of,
)
from memories.models import Evidence, EvidenceKind
from prompts.memory import without_tags
from search.vectors import Floats

MOST_CHARACTERS = 200_000  # of a longer conversation the newest part is looked at
LONGEST_KEPT = 300  # characters of a quote that are stored
FOREIGN_SHARE = 0.3
"""Share of a memory that text from elsewhere says and the person does not, from which on it is taken to come from
there."""
OWN_SHARE = 0.34  # share of a memory that the person's words say, below which meaning is compared too
CLOSE = 0.4  # cosine from which on a sentence means something like a memory; below it static vectors tell nothing


class Speaker(StrEnum):
    """Whose words a message holds."""

    PERSON = "person"
    ATTACHMENT = "attachment"
    TOOL = "tool"
    ASSISTANT = "assistant"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One message of a conversation, and where it is stored as far as that is known."""

    speaker: Speaker
    text: str
    session_id: UUID | None = None
    run_id: UUID | None = None
    message_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class _Passage:
    """A part of a message that is of one kind. `foreign`: neither the person's words nor the memory's."""

    kind: EvidenceKind
    foreign: bool
    text: str
    start: int
    spoken: Spoken


_KINDS = {
    Speaker.ATTACHMENT: EvidenceKind.PASTED,
    Speaker.TOOL: EvidenceKind.TOOL,
    Speaker.ASSISTANT: EvidenceKind.ASSISTANT,
}
_SUPPORTING = (EvidenceKind.OWN_WORDS, EvidenceKind.ASSISTANT, EvidenceKind.RECALLED)
# Where a quote stands in several places, the first of these counts.
_ORDER = list(EvidenceKind)


@dataclass
class Conversation:
    """What was said, oldest first. `missed` counts quotes that stood nowhere: the model is told once, so that it can
    quote properly. `answers` were given in other conversations: what comes back of them is nobody's own words."""

    spoken: Sequence[Spoken] = ()
    missed: int = field(default=0, compare=False)
    answers: Sequence[str] = ()

    @cached_property
    def passages(self) -> list[_Passage]:
        """The messages, cut where a person's own words end and others' begin."""
        found: list[_Passage] = []
        foreign = False  # an answer that follows text from elsewhere may repeat it
        elsewhere = [key for text in self.answers[:MOST] if (key := answered(text, foreign=True))]
        here: deque[Answered] = deque(maxlen=MOST)
        for one in _newest(self.spoken):
            if one.speaker == Speaker.MEMORY:
                found += [_Passage(EvidenceKind.RECALLED, False, words, 0, one) for words in recalled_words(one.text)]
            elif one.speaker == Speaker.PERSON:
                passages = _of_person(one, [*elsewhere, *here])
                foreign = foreign or any(passage.foreign for passage in passages)
                found += passages
            else:
                foreign = foreign or one.speaker in {Speaker.TOOL, Speaker.ATTACHMENT}
                found.append(_Passage(_KINDS[one.speaker], foreign, one.text, 0, one))
                if one.speaker == Speaker.ASSISTANT and (said := answered(one.text, foreign=foreign)):
                    here.append(said)
        return [passage for passage in found if passage.text.strip()]

    @property
    def untrusted(self) -> bool:
        """Whether text from elsewhere was read."""
        return any(passage.foreign for passage in self.passages)

    def prepare(self) -> None:
        """Do ahead what every look-up needs: before a lock is taken."""
        _ = self._folded, self._own_terms, self._foreign_rows, self._rows

    def quoted(self, quote: str) -> Evidence | None:
        """Return where a quote stands; None where it stands nowhere. Tags around what was recalled may be in it."""
        return self._quoted(parts_of(quote)) or self._quoted(parts_of(without_tags(quote)))

    def _quoted(self, parts: list[str]) -> Evidence | None:
        if not parts:
            return None
        found = []
        for passage, text in zip(self.passages, self._folded, strict=True):
            if place := find_parts(parts, text):
                found.append((_ORDER.index(passage.kind), passage, place))
        if found:
            _, passage, place = min(found, key=lambda one: one[0])
            return _evidence(passage, *unfolded(passage.text, *place))
        # A quote over a border between own and pasted words is not their own.
        for one in _newest(self.spoken):
            if one.speaker == Speaker.PERSON and (place := find_parts(parts, folded(one.text))):
                return _evidence(_Passage(EvidenceKind.PASTED, True, one.text, 0, one), *unfolded(one.text, *place))
        return None

    def leaning(self, content: str, *, known: str = "") -> Evidence | None:
        """Return the words from elsewhere that a memory is closer to than to the person's own; None where it is not.
        `known` is what the memory said before."""
        if not self._foreign:
            return None
        wanted = Wanted.of(content)
        own = self._own_terms | terms_of(known)
        share, window = closest_in_words(wanted, self._foreign, without=own)
        if window and share >= FOREIGN_SHARE:
            return self._of_window(window)
        if wanted.share(own) < OWN_SHARE:
            for window in self._foreign:  # in another language only names and numbers stay what they are
                if window.terms & wanted.names - own:
                    return self._of_window(window)
            far, place = closest_in_meaning(content, self._foreign_rows)
            near, _ = closest_in_meaning(content, self._rows[EvidenceKind.OWN_WORDS])
            before, _ = closest_in_meaning(content, vectors_of([known]))
            if far >= CLOSE and far > max(near, before):
                return self._of_window(self._foreign[place])
        return None

    def closest(self, content: str) -> Evidence:
        """Return the words that support a memory best, the person's own before others'; of kind `none` where none
        does."""
        wanted = Wanted.of(content)
        for kind in _SUPPORTING:
            windows = self._windows(kind)
            share, window = closest_in_words(wanted, windows)
            if window and share >= OWN_SHARE:
                return self._of_window(window)
            near, place = closest_in_meaning(content, self._rows[kind])
            if near >= CLOSE:
                return self._of_window(windows[place])
        return Evidence()

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
        text = self.passages[window.passage].text[window.start : window.end]
        left = len(text) - len(text.lstrip())
        return _evidence(self.passages[window.passage], window.start + left, window.start + len(text.rstrip()))


def _of_person(one: Spoken, answers: Sequence[Answered]) -> list[_Passage]:
    """Return a message of the person as passages: their own words, text from elsewhere, and answers that came back."""
    returned = answers_in(one.text, answers)
    elsewhere = foreign_spans(one.text)
    repeated: list[Span] = []
    for start, end, answer in returned:
        mixed = any(begins < end and start < ends for begins, ends in elsewhere)
        (elsewhere if answer.foreign or mixed else repeated).append((start, end))
    spans = [(*span, EvidenceKind.PASTED) for span in merged(elsewhere)]
    spans += [(*span, EvidenceKind.ASSISTANT) for span in repeated]
    found: list[_Passage] = []
    at = 0
    for start, end, kind in sorted(spans):
        if start < at:
            continue
        found.append(_Passage(EvidenceKind.OWN_WORDS, False, one.text[at:start], at, one))
        found.append(_Passage(kind, kind == EvidenceKind.PASTED, one.text[start:end], start, one))
        at = end
    return [*found, _Passage(EvidenceKind.OWN_WORDS, False, one.text[at:], at, one)]


def _evidence(passage: _Passage, start: int, end: int) -> Evidence:
    return Evidence(
        kind=passage.kind,
        quote=passage.text[start:end][:LONGEST_KEPT],
        session_id=passage.spoken.session_id,
        run_id=passage.spoken.run_id,
        message_id=passage.spoken.message_id,
        # What was recalled stood among tags or in JSON there.
        start=None if passage.kind == EvidenceKind.RECALLED else passage.start + start,
        untrusted=passage.foreign,
    )


def _newest(spoken: Sequence[Spoken]) -> list[Spoken]:
    """Return the newest messages within the limit; the oldest of them may be cut to its beginning."""
    left = MOST_CHARACTERS
    kept: list[Spoken] = []
    for one in reversed(spoken):
        if left <= 0:
            break
        kept.append(one if len(one.text) <= left else replace(one, text=one.text[:left]))
        left -= len(one.text)
    return kept[::-1]

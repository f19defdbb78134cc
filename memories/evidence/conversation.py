"""A conversation as evidence: where a quote occurs, and whose words are closest to a memory.
Pure, without queries. The cost is O(n log n) in the length of the text that is examined."""

import calendar
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from memories.evidence.instructions import (
    ENGLISH,
    INSTRUCTIONS,
    NO_INSTRUCTIONS,
    HashedInstructions,
    instruction_terms,
    instructions_text,
)
from memories.evidence.passages import (
    MAX_CONVERSATION_CHARS,
    Passage,
    Speaker,
    Utterance,
    decoded_passages,
    newest,
    passages_of,
)
from memories.evidence.quotes import find_parts, folded, original_span, quote_parts
from memories.evidence.support import (
    MemoryTerms,
    Window,
    Windows,
    closest_by_meaning,
    closest_by_terms,
    has_known_meaning,
    longest_run,
    terms_of,
    vectors_of,
    windows_of,
)
from memories.models import Evidence, EvidenceKind
from prompts.memory import without_tags
from search.tokens import tokens_of
from search.vectors import static_vectors

MAX_QUOTE_CHARS = 300  # a longer quote is truncated when it is stored
MIN_FOREIGN_SHARE = 0.3
"""Share of a memory's terms that occur in foreign text and not in the person's words, from which on the memory is
attributed to the foreign text."""
MIN_FOREIGN_RUN = 3
"""Number of successive terms of a memory in one or two sentences of foreign text, and not in the person's words, from
which on it is attributed to the foreign text even if the rest of it is long."""
MIN_OWN_SHARE = 0.34  # share of a memory's terms in the person's words; below it, meanings are compared as well
MIN_INSTRUCTION_SHARE = 0.5
"""Share of a memory's terms that one or two sentences of a client's instructions must contain for the memory to be
attributed to them. Higher than for other foreign text, since instructions are long and say general things."""
MIN_INSTRUCTION_RUN = 4
MIN_SIMILARITY = 0.4  # cosine of a sentence and a memory; below it, static vectors say nothing about their meaning
SAME_MEANING = 0.6  # from here on they say the same; between the two, they may only be about the same topic


_SUPPORTING = (EvidenceKind.OWN_WORDS, EvidenceKind.ASSISTANT, EvidenceKind.RECALLED)  # the person's own words first
_VOUCHING = (EvidenceKind.OWN_WORDS, EvidenceKind.RECALLED)
_DATES = terms_of(" ".join([*calendar.month_name, *calendar.day_name, *calendar.month_abbr, *calendar.day_abbr]))
# If a quote occurs in several places, the first kind in this order wins.
_PRECEDENCE = list(EvidenceKind)


@dataclass
class Conversation:
    """The messages of a conversation, oldest first. `missed` counts quotes that were not found: the model gets one
    error, so that it can quote properly. `answers` are model answers from other conversations, which are not the
    person's own words if a client sends them as user messages. `instructions` are a client's texts for the model:
    system messages and descriptions of tools. They may repeat a page, or be those of a server the person does not
    know. `earlier_instructions` are those of which only hashes are known. `unread`: only the model has seen a part of
    it, such as a picture or what its server read. `unstored`: the assistant's answers may repeat texts that are not
    here."""

    utterances: Sequence[Utterance] = ()
    missed: int = field(default=0, compare=False)
    answers: Sequence[str] = ()
    instructions: Sequence[str] = ()
    earlier_instructions: HashedInstructions = NO_INSTRUCTIONS
    unread: bool = False
    unstored: bool = False

    @cached_property
    def passages(self) -> list[Passage]:
        """The messages, split where the person's own words end and foreign text begins, and what they encode."""
        foreign = self.unread or self.unstored or self.earlier_instructions.incomplete
        found = passages_of(self.utterances, self.answers, foreign=foreign)
        return [*found, *decoded_passages(found)]

    @property
    def untrusted(self) -> bool:
        """Whether the conversation contains foreign text."""
        return any(passage.foreign for passage in self.passages)

    @property
    def unexamined(self) -> bool:
        """Whether the conversation contains what nothing here can read, or the beginning of a very long one is not
        read. It may say anything."""
        said = sum(len(said.text) for said in self.utterances if said.speaker != Speaker.MEMORY)
        return self.unread or said > MAX_CONVERSATION_CHARS

    @property
    def compared(self) -> bool:
        """Whether it contains anything that a memory must not come from."""
        return self.untrusted or self.unexamined or self._is_instructed

    @property
    def _is_instructed(self) -> bool:
        return bool(self._instruction_windows.rows or self.earlier_instructions.parts)

    def prepare(self) -> None:
        """Compute what every look-up needs, so that it does not happen under a lock."""
        _ = self._folded, self._foreign.vectors, [windows.vectors for windows in self._windows.values()]
        _ = self._folded_instructions, self._instruction_windows, self.earlier_instructions.indexes

    def find_quote(self, quote: str) -> Evidence | None:
        """Return where a quote occurs, or None. The quote may include the tags around recalled memories."""
        return (
            self._find_parts(quote_parts(quote))
            or self._find_parts(quote_parts(without_tags(quote)))
            or self._find_whole(folded(quote))
        )

    def _find_whole(self, key: str) -> Evidence | None:
        """Return a passage that consists of a quote, which may then be as short as "no" or "43"."""
        same = [passage for passage, text in zip(self.passages, self._folded, strict=True) if key and text == key]
        found = min(same, key=lambda passage: _PRECEDENCE.index(passage.kind), default=None)
        return _evidence(found, 0, len(found.text)) if found else None

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
        for utterance in newest(self.utterances):
            if utterance.speaker == Speaker.PERSON and (place := find_parts(parts, folded(utterance.text))):
                passage = Passage(EvidenceKind.PASTED, True, utterance.text, 0, utterance)
                return _evidence(passage, *original_span(passage.text, *place))
        if place := find_parts(parts, self._folded_instructions):
            return _evidence(self._instructions, *original_span(self._instructions.text, *place))
        return None

    def closest_foreign(self, content: str, *, previous: str = "") -> Evidence | None:
        """Return the foreign text that a memory is closer to than to the person's own words, or None if there is none.
        `previous` is the memory's content before the write, which counts as the person's own."""
        if not self._foreign.rows and not self._is_instructed:
            return None
        memory_terms = MemoryTerms.of(content)
        own = self._windows[EvidenceKind.OWN_WORDS].by_term.keys() | terms_of(previous)
        window = self._closest_message(content, memory_terms, own, previous)
        window = window or self._closest_instruction(content, memory_terms, own)
        return self._of_window(window) if window else None

    def foreign_label(self, label: str) -> Evidence | None:
        """Return the foreign text with successive words, or a name, of a label that the person's words lack, or None.
        Words of it that are apart do not count and meanings are not compared, since a label is about the topic of the
        text."""
        terms = MemoryTerms.of(label)
        asked = terms.weights.keys() - self._windows[EvidenceKind.OWN_WORDS].by_term.keys()
        for window in self._foreign.sharing(asked):
            shared = window.terms & asked
            if terms.coverage(shared) >= MIN_FOREIGN_SHARE and (shared & terms.names or self._succeed(window, shared)):
                return self._of_window(window)
        return None

    def _succeed(self, window: Window, terms: Set[str]) -> bool:
        """Return True if two of these terms are next to each other in a window, not counting function words."""
        if len(terms) < 2:
            return False
        said = [token.term for token in tokens_of(self.passages[window.passage].text[window.start : window.end])]
        return any(one != other and {one, other} <= terms for one, other in pairwise(said))

    def _closest_message(self, content: str, memory_terms: MemoryTerms, own: Set[str], previous: str) -> Window | None:
        coverage, window = closest_by_terms(memory_terms, self._foreign, without=own)
        if window and coverage >= MIN_FOREIGN_SHARE:
            return window
        run, window = longest_run(memory_terms, self._foreign, without=own)
        if window and run >= MIN_FOREIGN_RUN:
            return window
        if memory_terms.coverage(own) >= MIN_OWN_SHARE:
            return None
        if window := next(self._foreign.sharing(memory_terms.names - own), None):
            return window  # only names and numbers survive a translation
        far, place = closest_by_meaning(content, self._foreign.vectors)
        near, _ = closest_by_meaning(content, self._windows[EvidenceKind.OWN_WORDS].vectors)
        before, _ = closest_by_meaning(content, vectors_of([previous]))
        return self._foreign.rows[place] if far >= MIN_SIMILARITY and far > max(near, before) else None

    def _closest_instruction(self, content: str, memory_terms: MemoryTerms, own: Set[str]) -> Window | None:
        # Instructions state the date, which memories mention, too.
        known = own | _DATES | {term for term in memory_terms.weights if term.isdigit()}
        is_own = memory_terms.coverage(own) >= MIN_OWN_SHARE
        earlier = self.earlier_instructions.windows(memory_terms.weights)
        for windows in (self._instruction_windows, earlier):
            run, window = longest_run(memory_terms, windows, without=known)
            if window and run >= MIN_INSTRUCTION_RUN:
                return window
            if is_own:
                continue
            coverage, window = closest_by_terms(memory_terms, windows, without=known)
            if window and coverage >= MIN_INSTRUCTION_SHARE:
                return window
            # Only names survive a translation. Within English, where other words would be the same, they say little.
            english = static_vectors().is_english(content)
            named = windows.sharing(memory_terms.names - known)
            if window := next((found for found in named if not (english and ENGLISH in found.terms)), None):
                return window
        return None

    def vouches_for(self, content: str, *, previous: str = "") -> bool:
        """Whether the person's words, recalled memory or the memory's previous content say what a memory says. Stricter
        than `best_support`: no name or number may be missing, and a similar topic does not suffice."""
        memory_terms = MemoryTerms.of(content)
        vouching = [self._windows[kind] for kind in _VOUCHING]
        if self.lacks_names(content, previous=previous):
            return False
        before = terms_of(previous)
        coverages = [closest_by_terms(memory_terms, windows)[0] for windows in vouching]
        if max(*coverages, memory_terms.coverage(before)) >= MIN_OWN_SHARE:
            return True
        if not has_known_meaning(content):
            return False
        rows = (*(windows.vectors for windows in vouching), vectors_of([previous]))
        return max(closest_by_meaning(content, said)[0] for said in rows) >= SAME_MEANING

    def lacks_names(self, content: str, *, previous: str = "") -> bool:
        """Whether a name or number of a memory is in none of the person's words, recalled memory and the memory's
        previous content."""
        said = [terms_of(previous), *(self._windows[kind].by_term for kind in _VOUCHING)]
        return MemoryTerms.of(content).has_other_names(said)

    def best_support(self, content: str, kinds: Sequence[EvidenceKind] = _SUPPORTING) -> Evidence:
        """Return the text that supports a memory best, of the first of these kinds that does; of kind `none` if nothing
        supports it."""
        memory_terms, is_known = MemoryTerms.of(content), has_known_meaning(content)
        for kind in kinds:
            windows = self._windows[kind]
            coverage, window = closest_by_terms(memory_terms, windows)
            if window and coverage >= MIN_OWN_SHARE:
                return self._of_window(window)
            near, place = closest_by_meaning(content, windows.vectors)
            if is_known and near >= MIN_SIMILARITY:
                return self._of_window(windows.rows[place])
        return Evidence()

    @cached_property
    def _folded(self) -> list[str]:
        return [folded(passage.text) for passage in self.passages]

    @cached_property
    def _all_windows(self) -> list[Window]:
        return [window for at, passage in enumerate(self.passages) for window in windows_of(at, passage.text)]

    @cached_property
    def _foreign(self) -> Windows:
        return self._windows_of([passage.foreign for passage in self.passages])

    @cached_property
    def _windows(self) -> dict[EvidenceKind, Windows]:
        return {kind: self._windows_of([passage.kind == kind for passage in self.passages]) for kind in _SUPPORTING}

    def _windows_of(self, chosen: Sequence[bool]) -> Windows:
        rows = [window for window in self._all_windows if chosen[window.passage]]
        return Windows.of(rows, [self.passages[row.passage].text[row.start : row.end] for row in rows])

    @cached_property
    def _instructions(self) -> Passage:
        text = instructions_text(self.instructions)
        return Passage(EvidenceKind.TOOL, True, text, 0, Utterance(speaker=Speaker.TOOL, text=text))

    @cached_property
    def _folded_instructions(self) -> str:
        return folded(self._instructions.text)

    @cached_property
    def _instruction_windows(self) -> Windows:
        return Windows.of(list(windows_of(INSTRUCTIONS, self._instructions.text, instruction_terms)))

    def _of_window(self, window: Window) -> Evidence:
        passage = self._instructions if window.passage == INSTRUCTIONS else self.passages[window.passage]
        return _evidence(passage, window.start, window.end)


def _evidence(passage: Passage, start: int, end: int) -> Evidence:
    text = passage.text[start:end]
    start += len(text) - len(text.lstrip())
    return Evidence(
        kind=passage.kind,
        quote=text.strip()[:MAX_QUOTE_CHARS],
        session_id=passage.utterance.session_id,
        run_id=passage.utterance.run_id,
        message_id=passage.utterance.message_id,
        # Recalled text was among tags or in JSON, so its position in the message is not known.
        start=None if passage.kind == EvidenceKind.RECALLED or passage.start is None else passage.start + start,
        untrusted=passage.foreign,
    )

"""Hashes of what a client tells the model around a conversation, in system messages and definitions of tools. Such
texts may repeat a page, but are not stored. The hashes of their sentences' terms suffice to recognise a memory that
comes from them. Pure functions."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from memories.evidence.support import Window, Windows, sentence_spans, terms_of
from search.vectors import static_vectors

MAX_INSTRUCTION_CHARS = 50_000  # only the beginning of longer instructions is examined
INSTRUCTIONS = -1  # the passage of their sentences
_END = 0  # follows each sentence: the hash of its text, then those of its terms
ENGLISH = "in English"  # among the terms of a sentence in English; no search term has a space
_BETWEEN = Window(INSTRUCTIONS, 0, 0, frozenset())  # separates sentences that are not neighbours

Hashes = NDArray[np.uint32]


@dataclass(frozen=True)
class HashedInstructions:
    """Hashed sentences, each part with the salt that it was hashed with. An empty part stands for others that are not
    known."""

    parts: Sequence[tuple[bytes, bytes]] = ()

    @property
    def incomplete(self) -> bool:
        """Whether there were others that are not known."""
        return any(not kept for _, kept in self.parts)

    @property
    def joined(self) -> dict[bytes, bytes]:
        """The hashes by salt."""
        joined: dict[bytes, list[bytes]] = {}
        for salt, kept in self.parts:
            joined.setdefault(salt, []).append(kept)
        return {salt: b"".join(kept) for salt, kept in joined.items()}

    @cached_property
    def indexes(self) -> "list[_Index]":
        """The parts, prepared for look-ups."""
        return [_Index.of(salt, _hashes(kept)) for salt, kept in self.joined.items()]

    def windows(self, terms: Collection[str]) -> Windows:
        """Return the sentences with any of these terms, each with those of the terms that it has, and ENGLISH."""
        return Windows.of([window for index in self.indexes for window in index.windows(terms)])


@dataclass(frozen=True, slots=True)
class _Index:
    """A part, for look-ups: its sorted hashes, the number of each one's sentence, and whether each sentence is in
    English."""

    salt: bytes
    hashes: Hashes
    sentences: NDArray[np.intp]
    english: NDArray[np.bool_]

    @classmethod
    def of(cls, salt: bytes, hashes: Hashes) -> "_Index":
        sentences = np.cumsum(hashes == _END)
        english = np.zeros(len(hashes), dtype=bool)
        english[sentences[hashes == _hash(ENGLISH, salt)]] = True
        order = np.argsort(hashes, kind="stable")
        return cls(salt, hashes[order], sentences[order], english)

    def windows(self, terms: Collection[str]) -> Iterator[Window]:
        shared: dict[int, set[str]] = {}
        for term in terms:
            asked = np.uint32(_hash(term, self.salt))
            first, end = np.searchsorted(self.hashes, asked), np.searchsorted(self.hashes, asked, side="right")
            for sentence in self.sentences[first:end].tolist():
                shared.setdefault(sentence, set()).add(term)
        for sentence in sorted(shared):
            if sentence - 1 not in shared:
                yield _BETWEEN
            found = shared[sentence] | ({ENGLISH} if self.english[sentence] else set())
            yield Window(INSTRUCTIONS, 0, 0, frozenset(found))


NO_INSTRUCTIONS = HashedInstructions()


def instructions_text(texts: Sequence[str]) -> str:
    """Return the part of a client's instructions that is examined."""
    return "\n".join(dict.fromkeys(texts))[:MAX_INSTRUCTION_CHARS]


def instruction_terms(sentence: str) -> frozenset[str]:
    """Return the search terms of a sentence, and ENGLISH."""
    return terms_of(sentence) | ({ENGLISH} if static_vectors().is_english(sentence) else set())


def hashed_instructions(texts: Sequence[str], salt: bytes, known: Sequence[bytes] = ()) -> bytes:
    """Return the hashed sentences of a client's instructions, without those in the results `known` for earlier ones
    with this salt. The salt has at most 64 bytes."""
    text = instructions_text(texts)
    seen = {number for kept in known for number in _sentence_hashes(_hashes(kept))}
    found: list[int] = []
    for start, end in sentence_spans(text):
        sentence = _hash(text[start:end], salt)
        if sentence not in seen:
            seen.add(sentence)
            found += (sentence, *(_hash(term, salt) for term in instruction_terms(text[start:end])), _END)
    return np.array(found, dtype="<u4").tobytes()


def _hash(text: str, salt: bytes) -> int:
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=4, key=salt).digest()) or 1  # 0 is _END


def _hashes(kept: bytes) -> Hashes:
    return np.frombuffer(kept, dtype="<u4")


def _sentence_hashes(hashes: Hashes) -> list[int]:
    ends = np.flatnonzero(hashes == _END)
    return [int(number) for number in hashes[np.append(0, ends[:-1] + 1)]] if len(ends) else []

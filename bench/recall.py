"""Measure how well memories are found, through the shipped search, beside simpler strategies.

Conversation form: every turn is one entry with session, speaker and date, the question is the query.
Curated form: short facts and whole messages; with --keywords the facts carry words written to be found.
With --vectors (arrays `<id>/t` for the entries and `<id>/q` for the questions of a book, in order) `ranked` has them as
those of an upstream embedding model, and `vectors_only` ranks by their cosine alone.
With --among N each question stands at some place among N paragraphs of Daybook's own documentation, which are about
other things.
Rates are shares of 1 in the JSON line and per cent in the table.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray

from search import AnalysisCache, BookIndex, Entry, extract_keywords
from search.book import build_arrays
from search.languages import FUNCTION_WORDS
from search.postings import summed
from search.tokens import tokens_of

K = 10
_FRAMES = (
    "kind type sort many much long often tell say said mention mentioned remind know please give show want wants like "
    "likes likely get got"
)
QUESTION_WORDS = FUNCTION_WORDS["english"] | frozenset(_FRAMES.split())


@dataclass(frozen=True, eq=False)
class Question:
    text: str
    relevant: frozenset[int]
    kind: str
    vector: NDArray[np.float32] | None = None


Search = Callable[[Question], list[int]]


@dataclass(frozen=True)
class Book:
    name: str
    entries: tuple[Entry, ...]
    questions: tuple[Question, ...]
    vectors: NDArray[np.float32] | None = None
    """Of the entries (N, D)."""


def read_books(data: Path, keywords: Path | None) -> tuple[str, list[Book]]:
    """Return the form of the file, told by its keys, and its books."""
    records = json.loads(data.read_text(encoding="utf-8"))
    if "turns" in records[0]:
        return "conversation", [_conversation(record) for record in records]
    search_words = json.loads(keywords.read_text(encoding="utf-8")) if keywords else {}
    return "curated", [_curated(record, search_words) for record in records]


def with_vectors(books: Sequence[Book], file: Path) -> list[Book]:
    """Return the books with the vectors of a file. Raises SystemExit when it lacks some, or holds too few or many."""
    found: list[Book] = []
    with np.load(file) as arrays:
        for book in books:
            for name, count in ((f"{book.name}/t", len(book.entries)), (f"{book.name}/q", len(book.questions))):
                if name not in arrays or len(arrays[name]) != count:
                    raise SystemExit(f"{file} must hold an array {name} with {count} rows")
            entries, questions = (arrays[f"{book.name}/{kind}"].astype(np.float32) for kind in "tq")
            asked = zip(book.questions, questions, strict=True)
            questions_with = tuple(replace(question, vector=vector) for question, vector in asked)
            found.append(replace(book, questions=questions_with, vectors=entries))
    return found


def among_paragraphs(books: Sequence[Book], count: int) -> list[Book]:
    """Return the books with each question among so many paragraphs, the same ones in each run."""
    pages = sorted((Path(__file__).resolve().parents[1] / "docs").glob("*.md"))
    paragraphs = [" ".join(part.split()) for page in pages for part in page.read_text().split("\n\n")]
    plain = [text for text in paragraphs if 150 < len(text) < 500 and not set("|`<#") & set(text)]
    drawn = random.Random(3)

    def with_others(text: str) -> str:
        parts = drawn.sample(plain, count)
        parts.insert(drawn.randint(0, count), text)
        return "\n\n".join(parts)

    return [
        replace(book, questions=tuple(replace(asked, text=with_others(asked.text)) for asked in book.questions))
        for book in books
    ]


def _conversation(record: dict[str, Any]) -> Book:
    entries = tuple(
        Entry(
            number=at,
            content=turn["text"],
            session_id=turn["dia_id"].split(":")[0],
            speaker=turn["speaker"],
            said_at=datetime.strptime(turn["date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC),
        )
        for at, turn in enumerate(record["turns"])
    )
    place = {turn["dia_id"]: at for at, turn in enumerate(record["turns"])}
    questions = tuple(
        Question(one["question"], frozenset(place[e] for e in one["evidence"]), str(one["category"]))
        for one in record["questions"]
    )
    return Book(record["id"], entries, questions)


def _curated(record: dict[str, Any], search_words: dict[str, list[str]]) -> Book:
    entries = tuple(
        Entry(
            number=at,
            content=memory["content"],
            keywords=tuple(search_words.get(f"{record['id']}/{memory['id']}", ())),
            category=memory["category"],
            target=memory["target"],
            said_at=datetime.fromisoformat(memory["created_at"]),
        )
        for at, memory in enumerate(record["memories"])
    )
    place = {memory["id"]: at for at, memory in enumerate(record["memories"])}
    questions = tuple(
        Question(one["query"], frozenset(place[r] for r in one["relevant"]), one["kind"]) for one in record["queries"]
    )
    return Book(record["id"], entries, questions)


def content_keywords(text: str) -> list[str]:
    """Return the keywords of a message without question and function words, as the simpler strategies see it."""
    return [word for word in extract_keywords(text) if word not in QUESTION_WORDS]


def strict(book: Book) -> Search:
    index = BookIndex.build(book.entries, analysis=CACHE)
    return lambda asked: [hit.number for hit in index.search(asked.text, limit=K, strategy="match_all")]


def strict_without_question_words(book: Book) -> Search:
    index = BookIndex.build(book.entries, analysis=CACHE)

    def search(asked: Question) -> list[int]:
        keywords = content_keywords(asked.text)
        hits = index.search(asked.text, limit=K, keywords=keywords, strategy="match_all")
        return [hit.number for hit in hits]

    return search


def any_by_count(book: Book) -> Search:
    folded = [entry.content.casefold() for entry in book.entries]

    def search(asked: Question) -> list[int]:
        keywords = content_keywords(asked.text)
        counts = np.array([sum(word in content for word in keywords) for content in folded])
        return [int(at) for at in np.argsort(-counts, kind="stable")[:K] if counts[at]]

    return search


def fts5_porter(book: Book) -> Search:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE entry USING fts5(body, tokenize = 'porter unicode61')")
    rows = [(e.number, " ".join([e.speaker or "", e.content, *e.keywords])) for e in book.entries]
    base.executemany("INSERT INTO entry(rowid, body) VALUES (?, ?)", rows)

    def search(asked: Question) -> list[int]:
        words = " OR ".join(f'"{word}"' for word in content_keywords(asked.text))
        if not words:
            return []
        found = base.execute("SELECT rowid FROM entry WHERE entry MATCH ? ORDER BY rank LIMIT ?", (words, K))
        return [int(row[0]) for row in found]

    return search


def bm25(book: Book) -> Search:
    with_all = [replace(e, content=" ".join([e.speaker or "", e.content, *e.keywords])) for e in book.entries]
    arrays = build_arrays([replace(e, session_id=None, keywords=()) for e in with_all], CACHE)

    def search(asked: Question) -> list[int]:
        terms = np.unique(arrays.places_of([token.term for token in tokens_of(asked.text)]))
        terms = terms[terms >= 0]
        contributions = arrays.content.contributions(terms, np.ones(len(terms), dtype=np.float32))
        score = summed([contributions], arrays.content.size)
        return [int(at) for at in np.argsort(-score, kind="stable")[:K] if score[at] > 0]

    return search


def ranked(book: Book, *, threshold: bool = True) -> Search:
    vectors = None if book.vectors is None else dict(enumerate(book.vectors))
    index = BookIndex.build(book.entries, analysis=CACHE, vectors=vectors)

    def search(asked: Question) -> list[int]:
        hits = index.search(asked.text, limit=K, threshold=threshold, query_vector=asked.vector)
        return [hit.number for hit in hits]

    return search


def vectors_only(book: Book) -> Search:
    rows = book.vectors
    if rows is None:
        raise SystemExit("vectors_only needs --vectors")

    def search(asked: Question) -> list[int]:
        assert asked.vector is not None
        return [int(at) for at in np.argsort(-(rows @ asked.vector), kind="stable")[:K]]

    return search


CACHE = AnalysisCache()
STRATEGIES: dict[str, Callable[[Book], Search]] = {
    "match_all": strict,
    "match_all_no_question_words": strict_without_question_words,
    "any_by_count": any_by_count,
    "fts5_porter": fts5_porter,
    "bm25": bm25,
    "ranked": ranked,
    "ranked_without_threshold": lambda book: ranked(book, threshold=False),
    "vectors_only": vectors_only,
}


def judge(found: Sequence[int], question: Question, book: Book) -> dict[str, float]:
    """Return the measures of one answered question."""
    right = [at in question.relevant for at in found[:K]]
    session = [book.entries[at].session_id for at in found[:K]]
    wanted = {book.entries[at].session_id for at in question.relevant}
    return {
        "hit_at_5": float(any(right[:5])),
        "hit_at_10": float(any(right)),
        "recall_at_10": sum(right) / len(question.relevant),
        "mrr_at_10": next((1 / (place + 1) for place, is_right in enumerate(right) if is_right), 0.0),
        "session_hit_at_10": float(bool(wanted & set(session))),
    }


def measure(make: Callable[[Book], Search], books: Sequence[Book], form: str) -> dict[str, Any]:
    """Return all measures of one strategy over all books."""
    judged: dict[str, list[dict[str, float]]] = defaultdict(list)
    silent: list[bool] = []
    times: list[float] = []
    for book in books:
        search = make(book)
        for question in book.questions:
            started = time.perf_counter()
            found = search(question)
            times.append((time.perf_counter() - started) * 1000)
            if question.relevant:
                judged[question.kind].append(judge(found, question, book))
            else:
                silent.append(not found)
    result: dict[str, Any] = _means([one for ones in judged.values() for one in ones])
    if form != "conversation":
        del result["session_hit_at_10"]
        result["silent_on_none"] = round(sum(silent) / len(silent), 4) if silent else None
    result["by_kind"] = {kind: {"n": len(ones), **_means(ones)} for kind, ones in sorted(judged.items())}
    return result | {"p50_ms": _part(times, 50), "p95_ms": _part(times, 95)}


def _means(judged: Sequence[dict[str, float]]) -> dict[str, float]:
    return {key: round(sum(one[key] for one in judged) / len(judged), 4) for key in judged[0]} if judged else {}


def _part(times: Sequence[float], percent: float) -> float:
    return round(float(np.percentile(times, percent)), 3)


def time_large(books: Sequence[Book], size: int) -> dict[str, Any]:
    """Time one book of `size` entries: those of all books over and over, with marks that make them differ."""
    base = [(book, entry) for book in books for entry in book.entries]
    entries = []
    for at in range(size):
        book, entry = base[at % len(base)]
        lap = at // len(base)
        session = entry.session_id and f"{book.name}/{entry.session_id}/{lap}"
        content = f"{entry.content} {base[(at * 7919) % len(base)][1].content.split(' ')[0]} {lap}"
        entries.append(replace(entry, number=at, content=content, session_id=session))
    cache = AnalysisCache()
    started = time.perf_counter()
    index = BookIndex.build(entries, analysis=cache)
    cold = time.perf_counter() - started
    entries[0] = replace(entries[0], content="One changed entry")
    started = time.perf_counter()
    BookIndex.build(entries, analysis=cache)
    warm = time.perf_counter() - started
    times = []
    for text in [question.text for book in books for question in book.questions][:400]:
        started = time.perf_counter()
        index.search(text, limit=K)
        times.append((time.perf_counter() - started) * 1000)
    return {
        "entries": size, "cold_build_ms": round(cold * 1000, 1), "warm_build_ms": round(warm * 1000, 1),
        "megabytes": round(index.nbytes / 1e6, 1), "p50_ms": _part(times, 50), "p95_ms": _part(times, 95),
    }  # fmt: skip


def print_table(results: dict[str, dict[str, Any]]) -> None:
    columns = ["hit_at_5", "hit_at_10", "recall_at_10", "mrr_at_10", "session_hit_at_10", "silent_on_none"]
    columns = [name for name in columns if any(name in result for result in results.values())]
    print(f"{'strategy':28}" + "".join(f"{name:>18}" for name in columns) + f"{'p50 ms':>9}{'p95 ms':>9}")
    for name, result in results.items():
        cells = "".join(f"{100 * result[column]:>18.1f}" if result.get(column) is not None else f"{'-':>18}"
                        for column in columns)  # fmt: skip
        print(f"{name:28}{cells}{result['p50_ms']:>9.2f}{result['p95_ms']:>9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="JSON file in the conversation or the curated form")
    parser.add_argument("--keywords", type=Path, help="JSON object: '<set id>/<memory id>' to a list of keywords")
    parser.add_argument("--vectors", type=Path, help="NPZ file: arrays '<id>/t' and '<id>/q' of each book, in order")
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, help="only these")
    parser.add_argument("--among", type=int, default=0, metavar="N", help="each question among N paragraphs")
    parser.add_argument("--synthetic", type=int, metavar="N", help="also time the search in a book of N entries")
    options = parser.parse_args()
    form, books = read_books(options.data, options.keywords)
    if options.vectors:
        books = with_vectors(books, options.vectors)
    if options.among:
        books = among_paragraphs(books, options.among)
    names = options.strategies or [name for name in STRATEGIES if options.vectors or name != "vectors_only"]
    results = {name: measure(STRATEGIES[name], books, form) for name in names}
    print_table(results)
    report: dict[str, Any] = {
        "form": form,
        "questions": sum(len(book.questions) for book in books),
        "strategies": results,
    }
    if options.synthetic:
        report["synthetic"] = time_large(books, options.synthetic)
        print("synthetic book:", ", ".join(f"{name} {value}" for name, value in report["synthetic"].items()))
    print(json.dumps(report))


if __name__ == "__main__":
    main()

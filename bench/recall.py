"""Measure how well the shipped search finds memories, compared with simpler strategies.

Conversation format: every turn is one entry with session, speaker and date; the question is the query.
Curated format: short facts and whole messages; --keywords adds search keywords to the facts.
--vectors adds arrays `<id>/t` for the entries and `<id>/q` for the questions of a book, in order: `ranked` uses them
like those of an upstream embedding model, `vectors_only` ranks by their cosine alone.
--among N places each question at random among N unrelated paragraphs of Daybook's documentation.
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
from functools import partial
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
    """One row per entry (N, D)."""


def read_books(data: Path, keywords: Path | None) -> tuple[str, list[Book]]:
    """Return the format of the file (`conversation` or `curated`) and its books."""
    records = json.loads(data.read_text(encoding="utf-8"))
    if "turns" in records[0]:
        return "conversation", [_conversation(record) for record in records]
    search_words = json.loads(keywords.read_text(encoding="utf-8")) if keywords else {}
    return "curated", [_curated(record, search_words) for record in records]


def with_vectors(books: Sequence[Book], file: Path) -> list[Book]:
    """Return the books with the vectors of a file. Raises SystemExit if an array is missing or has the wrong length."""
    found: list[Book] = []
    with np.load(file) as arrays:
        for book in books:
            for name, count in ((f"{book.name}/t", len(book.entries)), (f"{book.name}/q", len(book.questions))):
                if name not in arrays or len(arrays[name]) != count:
                    raise SystemExit(f"{file} must hold an array {name} with {count} rows")
            entries, questions = (arrays[f"{book.name}/{kind}"].astype(np.float32) for kind in "tq")
            pairs = zip(book.questions, questions, strict=True)
            questions_with = tuple(replace(question, vector=vector) for question, vector in pairs)
            found.append(replace(book, questions=questions_with, vectors=entries))
    return found


def among_paragraphs(books: Sequence[Book], count: int) -> list[Book]:
    """Return the books with each question among `count` paragraphs, the same ones in each run."""
    pages = sorted((Path(__file__).resolve().parents[1] / "docs").glob("*.md"))
    paragraphs = [" ".join(part.split()) for page in pages for part in page.read_text().split("\n\n")]
    plain = [text for text in paragraphs if 150 < len(text) < 500 and not set("|`<#") & set(text)]
    rng = random.Random(3)

    def surrounded(text: str) -> str:
        parts = rng.sample(plain, count)
        parts.insert(rng.randint(0, count), text)
        return "\n\n".join(parts)

    return [
        replace(book, questions=tuple(replace(question, text=surrounded(question.text)) for question in book.questions))
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
        Question(row["question"], frozenset(place[e] for e in row["evidence"]), str(row["category"]))
        for row in record["questions"]
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
        Question(row["query"], frozenset(place[r] for r in row["relevant"]), row["kind"]) for row in record["queries"]
    )
    return Book(record["id"], entries, questions)


def content_keywords(text: str) -> list[str]:
    """Return the keywords of a message without question and function words, for the simpler strategies."""
    return [word for word in extract_keywords(text) if word not in QUESTION_WORDS]


def by_index(book: Book, words_of: Callable[[str], list[str]] | None = None, **options: Any) -> Search:
    """Return the shipped search with these options; `words_of` extracts the keywords of a message."""
    vectors = None if book.vectors is None else dict(enumerate(book.vectors))
    index = BookIndex.build(book.entries, analysis=CACHE, vectors=vectors)

    def search(question: Question) -> list[int]:
        keywords = words_of(question.text) if words_of else None
        hits = index.search(question.text, limit=K, keywords=keywords, query_vector=question.vector, **options)
        return [hit.number for hit in hits]

    return search


def any_by_count(book: Book) -> Search:
    folded = [entry.content.casefold() for entry in book.entries]

    def search(question: Question) -> list[int]:
        keywords = content_keywords(question.text)
        counts = np.array([sum(word in content for word in keywords) for content in folded])
        return [int(at) for at in np.argsort(-counts, kind="stable")[:K] if counts[at]]

    return search


def fts5_porter(book: Book) -> Search:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE entry USING fts5(body, tokenize = 'porter unicode61')")
    rows = [(e.number, " ".join([e.speaker or "", e.content, *e.keywords])) for e in book.entries]
    base.executemany("INSERT INTO entry(rowid, body) VALUES (?, ?)", rows)

    def search(question: Question) -> list[int]:
        words = " OR ".join(f'"{word}"' for word in content_keywords(question.text))
        if not words:
            return []
        found = base.execute("SELECT rowid FROM entry WHERE entry MATCH ? ORDER BY rank LIMIT ?", (words, K))
        return [int(row[0]) for row in found]

    return search


def bm25(book: Book) -> Search:
    flattened = [replace(e, content=" ".join([e.speaker or "", e.content, *e.keywords])) for e in book.entries]
    arrays = build_arrays([replace(e, session_id=None, keywords=()) for e in flattened], CACHE)

    def search(question: Question) -> list[int]:
        terms = np.unique(arrays.places_of([token.term for token in tokens_of(question.text)]))
        terms = terms[terms >= 0]
        contributions = arrays.content.contributions(terms, np.ones(len(terms), dtype=np.float32))
        score = summed([contributions], arrays.content.size)
        return [int(at) for at in np.argsort(-score, kind="stable")[:K] if score[at] > 0]

    return search


def vectors_only(book: Book) -> Search:
    rows = book.vectors
    if rows is None:
        raise SystemExit("vectors_only needs --vectors")

    def search(question: Question) -> list[int]:
        assert question.vector is not None
        return [int(at) for at in np.argsort(-(rows @ question.vector), kind="stable")[:K]]

    return search


CACHE = AnalysisCache()
STRATEGIES: dict[str, Callable[[Book], Search]] = {
    "match_all": partial(by_index, strategy="match_all"),
    "match_all_no_question_words": partial(by_index, words_of=content_keywords, strategy="match_all"),
    "any_by_count": any_by_count,
    "fts5_porter": fts5_porter,
    "bm25": bm25,
    "ranked": by_index,
    "ranked_without_threshold": partial(by_index, threshold=False),
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
    result: dict[str, Any] = _means([scores for of_kind in judged.values() for scores in of_kind])
    if form != "conversation":
        del result["session_hit_at_10"]
        result["silent_on_none"] = round(sum(silent) / len(silent), 4) if silent else None
    result["by_kind"] = {kind: {"n": len(of_kind), **_means(of_kind)} for kind, of_kind in sorted(judged.items())}
    return result | {"p50_ms": _percentile(times, 50), "p95_ms": _percentile(times, 95)}


def _means(judged: Sequence[dict[str, float]]) -> dict[str, float]:
    return {key: round(sum(scores[key] for scores in judged) / len(judged), 4) for key in judged[0]} if judged else {}


def _percentile(times: Sequence[float], percent: float) -> float:
    return round(float(np.percentile(times, percent)), 3)


def time_large(books: Sequence[Book], size: int) -> dict[str, Any]:
    """Time one book of `size` entries: those of all books, repeated with small differences."""
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
        "megabytes": round(index.nbytes / 1e6, 1), "p50_ms": _percentile(times, 50), "p95_ms": _percentile(times, 95),
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
    parser.add_argument("--data", type=Path, required=True, help="JSON file in the conversation or the curated format")
    parser.add_argument("--keywords", type=Path, help="JSON object: '<set id>/<memory id>' to a list of keywords")
    parser.add_argument("--vectors", type=Path, help="NPZ file: arrays '<id>/t' and '<id>/q' of each book, in order")
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, help="only these")
    parser.add_argument("--among", type=int, default=0, metavar="N", help="place each question among N paragraphs")
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

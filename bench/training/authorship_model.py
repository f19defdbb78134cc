"""Trains the packaged model, or checks that it was made from the current rows and code.

    python -m bench.training.authorship_model          train, report and write weights.npz and made_from.json (a minute)
    python -m bench.training.authorship_model --check  compare hashes of rows, code and weights (no training)

The same rows give the same weights on the same machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.training import fitting
from bench.training.fitting import Rows
from bench.training.made_from import ROOT, TRAINING, Recipe
from scanning.authorship.features import BITS, Sentence, places_of, sentences_of
from scanning.authorship.scoring import WEIGHTS, best_path
from scanning.model.features import Floats

RECIPE = Recipe(
    code=(
        *(WEIGHTS.with_name(f"{name}.py") for name in ("features", "scoring")),
        *(TRAINING / f"{name}.py" for name in ("fitting", "authorship_model")),
    ),
    rows=ROOT / "bench" / "authorship_rows",
    weights=WEIGHTS,
    made_from=WEIGHTS.with_name("made_from.json"),
)
PENALTY = 2.5
"""Factor of half the squared weights (L2), relative to the sum of the sentences' losses."""
CAUTION = 0.5
"""Subtracted from every score, since people should not be asked about what they wrote themselves."""
MAX_FALSE_ALARMS = 0.06
"""Share of messages without pasted parts in which a model that was not trained on their author may find one. Authors
who wrote only such messages do not count, since they made theirs as similar to pasted text as possible."""


@dataclass(frozen=True, slots=True)
class Message:
    """The message of a row: its author, its sentences, their features, and which of them are pasted."""

    author: str
    sentences: tuple[Sentence, ...]
    places: tuple[set[int], ...]
    pasted: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Model:
    """Fitted weights by table index, and the score of a sentence without features (`bias`)."""

    weights: Floats
    bias: float

    def scores(self, message: Message) -> Floats:
        """Return the score of each sentence."""
        return np.array([self.weights[list(places)].sum() + self.bias for places in message.places])


def main() -> None:
    """Train or check, according to the command line."""
    recipe = RECIPE.to_train(__doc__)
    if recipe is None:
        return
    messages = read_rows(recipe.rows)
    scores = unseen_scores(messages)
    threshold = clarity_threshold(messages, scores)
    model = fitted(messages)
    step = float(np.abs(model.weights).max()) / 127
    table = np.round(model.weights / step).astype(np.int8)
    np.savez_compressed(WEIGHTS, table=table, numbers=np.array([step, model.bias - CAUTION, threshold]))
    recipe.write()
    sys.stdout.write(report(messages, scores, threshold) + "\n")


def read_rows(folder: Path) -> list[Message]:
    """Return the messages of every *.jsonl of a folder; the file name is the author's name."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            parts = json.loads(line)["parts"]
            text = "".join(part for _, part in parts)
            is_foreign = np.concatenate([np.full(len(part), kind == "foreign") for kind, part in parts])
            sentences = sentences_of(text)
            pasted = np.array([is_foreign[sentence.start : sentence.end].mean() > 0.5 for sentence in sentences])
            found.append(Message(path.stem, tuple(sentences), tuple(places_of(sentences)), pasted))
    return found


def fitted(messages: Sequence[Message]) -> Model:
    """Return weights that separate pasted sentences from own ones."""
    places = [np.array(sorted(found)) for message in messages for found in message.places]
    joined = np.concatenate(places)
    begins = np.cumsum([0, *map(len, places)])
    rows = Rows(joined.astype(np.int32), np.ones(len(joined), dtype=np.float32), begins)
    pasted = np.concatenate([message.pasted for message in messages])
    return Model(*fitting.fitted(rows, pasted, np.ones(len(rows)), size=1 << BITS, penalty=PENALTY))


def unseen_scores(messages: Sequence[Message]) -> list[Floats]:
    """Return each message's scores by a model trained on all other authors."""
    models = {
        author: fitted([message for message in messages if message.author != author])
        for author in sorted({message.author for message in messages})
    }
    return [models[message.author].scores(message) - CAUTION for message in messages]


def clarity_threshold(messages: Sequence[Message], scores: Sequence[Floats]) -> float:
    """Return the clarity that at most MAX_FALSE_ALARMS of the messages without pasted sentences exceed."""
    pasting_authors = {message.author for message in messages if message.pasted.any()}
    found = sorted(
        (
            _path(message, own_scores)[1]
            for message, own_scores in zip(messages, scores, strict=True)
            if message.author in pasting_authors and not message.pasted.any()
        ),
        reverse=True,
    )
    return max(0.0, found[int(MAX_FALSE_ALARMS * len(found))])


def _path(message: Message, scores: Floats) -> tuple[NDArray[np.bool_], float]:
    path, clarity = best_path(scores, message.sentences)
    return np.array(path), clarity


def report(messages: Sequence[Message], scores: Sequence[Floats], threshold: float) -> str:
    """Return the table of the model card."""
    lines = [
        f"{len(messages)} messages",
        "author left out: pasted sentences missed, own messages flagged, own sentences lost",
    ]
    for author in [*sorted({message.author for message in messages}), "all"]:
        missed = pasted = flagged = own_messages = lost = own_sentences = 0
        for message, own_scores in zip(messages, scores, strict=True):
            if author not in (message.author, "all"):
                continue
            path, clarity = _path(message, own_scores)
            path &= clarity > threshold
            pasted += int(message.pasted.sum())
            missed += int((message.pasted & ~path).sum())
            if message.pasted.any():
                lost += int((path & ~message.pasted).sum())
                own_sentences += int((~message.pasted).sum())
            else:
                own_messages += 1
                flagged += bool(path.any())
        share = f"{missed / max(1, pasted):6.1%} of {pasted:<5}"
        lines.append(f"  {author:<10} {share} {flagged:3} of {own_messages:<4} {lost:4} of {own_sentences}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""The score of a text: how much it resembles planted orders. A linear model over hashed words and letters and the word
classes of `vocabulary/`, trained on the rows in `bench/scanner_rows/`; see MODEL_CARD.md."""

from scanning.model.scoring import Model, Score, model

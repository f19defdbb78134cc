"""The score of a text: how much its words resemble planted orders, learned from the rows in `bench/scanner_rows/`.
A linear model over hashed words and letters and over the word classes of `vocabulary/`; MODEL_CARD.md says more."""

from scanning.model.scoring import Model, Score, model

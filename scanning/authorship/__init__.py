"""Detects the parts of a message that its sender did not write: pasted pages, mails, chats. A linear model over each
sentence and its context, trained on the rows in `bench/authorship_rows/`; see MODEL_CARD.md."""

from scanning.authorship.features import sentences_of
from scanning.authorship.parts import pasted_parts
from scanning.authorship.scoring import pasted_spans

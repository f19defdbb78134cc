"""Which parts of a message its sender did not write: pasted pages, mails, chats. A linear model over what stands in
each sentence and around it, learned from the rows in `bench/authorship_rows/`; MODEL_CARD.md says more."""

from scanning.authorship.features import sentences_of
from scanning.authorship.scoring import pasted_spans

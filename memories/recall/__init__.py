"""The memory that is injected into a run: the snapshot of a book, its frozen block, and the recall of a turn."""

"""What a run is given from memory: the snapshot of a book, its frozen block, and the recall of a turn."""

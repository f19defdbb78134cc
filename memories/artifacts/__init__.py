"""The documents of a book: their paths, the cleaning of their contents, and their storage."""

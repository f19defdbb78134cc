"""The documents of a book: where they stand, what may stand in them, and who writes them."""

"""How async code reaches the database: lanes of threads, statements that are compiled once, transactions that are
shared, and large work in slices."""

"""Database access from async code: lanes of threads, compiled statements, shared transactions, and slices."""

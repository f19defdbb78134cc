"""Database access from async code: lanes of threads, precompiled statements, shared transactions, and large work in
slices."""

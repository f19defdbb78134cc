"""The history of a memory: its revisions in words, its provenance, and undo."""

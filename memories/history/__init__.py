"""What happened to a memory: its steps in words, where it comes from, and how a change is undone."""

"""Import memories and conversations from files. Readers parse a file without looking at any book (`formats.py` lists
them), and `running.py` previews or writes what they return. See docs/imports.md."""

"""Import: what people bring from other systems. Readers turn a file into memories and conversations without a look at
any book (`formats.py` has the table of them); `running.py` previews or writes what they found. See docs/imports.md."""

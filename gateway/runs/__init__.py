"""Runs: the two transactions of a turn and what happens between them.

`native.open_native` and `v1.open_v1` read what a turn needs and record that it began; `closing.close` stores what was
said. Each is one synchronous function: one thread hop, one transaction. Lock order: session (run) → book → memories →
owner. Called by gateway.api and gateway.turns.engine through memories.database.access.in_thread."""

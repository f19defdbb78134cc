"""Runs: the two transactions of a turn, and the state between them.

`native.open_native` and `v1.open_v1` read what a turn needs and open its run; `closing.close` stores the output. Each
is one synchronous function: one thread hop, one transaction.
Called by gateway.api and gateway.turns.engine through memories.database.access.in_thread."""

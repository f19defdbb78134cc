"""Consolidation turns past sessions into durable documents. Extraction takes notes from one session at a time;
synthesis writes MEMORY.md, memory_summary.md and skills from all notes. It is off unless `memories.enabled`; see
docs/consolidation.md."""

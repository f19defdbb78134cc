"""Consolidation: past sessions become durable documents. Extraction reads one session at a time; synthesis writes
MEMORY.md, memory_summary.md and skills from all that was noted.
Off unless `memories.enabled`; see docs/consolidation.md."""

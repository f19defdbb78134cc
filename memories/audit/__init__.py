"""The audit log: its only writer, the triggers that protect it, and the group of memory auditors."""

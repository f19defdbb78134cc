"""The audit log: its only writer, the triggers that keep it as it is, and the group of those who may read it."""

"""An owner's sessions apart from their turns: how long they are kept, found, exported and shown as JSON."""

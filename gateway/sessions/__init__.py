"""Sessions apart from their turns: renaming, tagging, archiving, deleting and searching them."""

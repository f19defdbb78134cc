"""An owner's sessions apart from their turns: keeping, finding, exporting and showing them as JSON."""

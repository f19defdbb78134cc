"""What processes tell each other: notifications, hints, and what was forgotten."""

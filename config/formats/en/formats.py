"""Dates and times as on all pages of Daybook, for those that Django formats itself: 20 Nov 2026, 09:41."""

DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = f"{DATE_FORMAT}, {TIME_FORMAT}"

"""How Django formats dates and times (FORMAT_MODULE_PATH)."""

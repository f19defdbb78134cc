"""Make text and JSON storable in any database: without NULs and lone surrogates, which JSON escapes can produce."""

from typing import Any


def storable_text(text: str) -> str:
    """Return the text without NULs, and with lone surrogates replaced by question marks."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def storable(data: Any) -> Any:
    """Return JSON data with all strings made storable, including keys."""
    if isinstance(data, str):
        return storable_text(data)
    if isinstance(data, list):
        return [storable(item) for item in data]
    if isinstance(data, dict):
        return {storable(key): storable(value) for key, value in data.items()}
    return data

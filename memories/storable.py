"""Text and JSON as any database takes them: no NUL and no half characters, which escapes in JSON smuggle in."""

from typing import Any


def storable_text(text: str) -> str:
    """Return the text without NUL; half a character (a lone surrogate) becomes a question mark."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def storable(data: Any) -> Any:
    """Return JSON with every text in it made storable, keys too."""
    if isinstance(data, str):
        return storable_text(data)
    if isinstance(data, list):
        return [storable(item) for item in data]
    if isinstance(data, dict):
        return {storable(key): storable(value) for key, value in data.items()}
    return data

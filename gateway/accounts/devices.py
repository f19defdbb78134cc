"""Describes the browser and system of a User-Agent header, such as “Firefox on Linux”."""

# The first match counts, since browsers also claim to be the ones they derive from.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_MAX_HEADER_CHARS = 1_000


def device_words(user_agent: str) -> str:
    """Return a description of a User-Agent header; “A browser” if it is not recognised."""
    header = user_agent[:_MAX_HEADER_CHARS]
    browser = next((name for token, name in _BROWSERS if token in header), "A browser")
    system = next((name for token, name in _SYSTEMS if token in header), "")
    return f"{browser} on {system}" if system else browser

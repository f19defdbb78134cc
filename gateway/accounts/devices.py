"""Words for the device that a browser says it runs on, such as “Firefox on Linux”."""

# The first that matches: browsers also name their ancestors.
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
_LONGEST = 1_000  # characters of a header that are read


def device_words(user_agent: str) -> str:
    """Return words for a User-Agent header; “A browser” if it is not recognised."""
    said = user_agent[:_LONGEST]
    browser = next((name for sign, name in _BROWSERS if sign in said), "A browser")
    system = next((name for sign, name in _SYSTEMS if sign in said), "")
    return f"{browser} on {system}" if system else browser

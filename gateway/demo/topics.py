"""A small table of topics: words that say the same thing, and words that a later message might use."""

from gateway.demo.statements import terms

_TOPICS = tuple(
    (terms(same), tuple(near.split()))
    for same, near in (
        ("live moved home address house flat apartment", "home place city where address location"),
        ("job employed profession employer works working", "job career profession work office"),
        ("vegetarian vegan allergic allergy eat food meat gluten lactose nuts", "food diet meal recipe dinner cook"),
        ("answers replies answer reply style tone short brief concise", "style length format tone writing"),
        ("married husband wife partner daughter son children kids sister brother", "family relatives home people"),
        ("deploy release ship publish production staging", "release rollout launch production version"),
        ("test tests pytest jest ci pipeline", "testing quality check build"),
        ("backup backups nas disk restore", "data safety copy storage recovery"),
        ("package dependency dependencies install", "dependencies install modules versions"),
        ("customer customers client invoice quote price vat", "business sales billing money offer"),
        ("language english german french spanish", "translation speak writing"),
        ("monday tuesday wednesday thursday friday weekday weekend", "schedule calendar week day when"),
        ("dog cat pet horse", "animal pet walk vet"),
        ("metric celsius kilometres units litres grams", "units measure temperature weight conversion"),
    )
)


def topic_keywords(content: str) -> list[str]:
    """Words that a later message may use for what a memory is about, and that it does not hold itself."""
    held = terms(content)
    found = dict.fromkeys(word for same, near in _TOPICS if same & held for word in near)
    return [word for word in found if not terms(word) & held][:12]


def shared_topics(one: str, other: str) -> int:
    """How many topics two texts have in common."""
    return sum(1 for same, _ in _TOPICS if same & terms(one) and same & terms(other))

"""A review's write: the change that the model wants to make to one memory, and its state. Rows store writes as JSON;
`WritesField` converts them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from django.db import models

from memories.models import Evidence


class WriteState(models.TextChoices):
    STAGED = "staged", "Staged"
    REFUSED = "refused", "Refused"
    WAITING = "waiting", "Waiting"
    APPLIED = "applied", "Saved"
    KNOWN = "known", "Known already"
    JOINED = "joined", "Asked before"
    REJECTED = "rejected", "Rejected"
    EXPIRED = "expired", "Not decided in time"
    UNDONE = "undone", "Undone"
    SKIPPED = "left_alone", "Changed since"


PENDING = frozenset({WriteState.WAITING, WriteState.REJECTED, WriteState.EXPIRED})
"""States in which a person can still approve a write."""
_INTERNAL = {"key", "version", "left_version", "edited_by", "proposed", "more", "imports"}
_LEFT_OUT_WHEN_EMPTY = _INTERNAL - {"key", "version"} | {"edited", "rule", "evidence", "times"}


@dataclass(slots=True, kw_only=True)
class ReviewWrite:
    """One write; `index` is its place in the order of the model's calls. `key` is the number of a stored memory, or
    `new1`, `new2` … for one that this review added. `version` is the memory's version when the review read it,
    `left_version` the one after the write. `proposed`: it waits or waited for approval, because of `rule` or, if that
    is empty, because the agent's settings require it for all writes."""

    index: int
    action: str = "add"  # add, update or delete
    memory_id: str | None = None
    key: str = ""
    version: int | None = None
    target: str = ""
    category: str | None = None
    keywords: list[str] | None = None
    before: str | None = None
    after: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)  # metadata, pinned, expires_at, if an import sets them
    imports: list[str] = field(default_factory=list)  # change sets of imports, if only imports proposed it
    state: WriteState = WriteState.STAGED
    reason: str = ""
    left_version: int | None = None
    edited: bool = False
    edited_by: str = ""
    rule: str = ""
    proposed: bool = False
    times: int = 0  # how often it was proposed again while it waited
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def number(self) -> int:
        """The number of the memory that it was stored as or refers to; 0 if there is none."""
        key = self.memory_id or self.key
        return int(key) if key.isdecimal() and len(key) < 10 else 0

    @property
    def pending(self) -> bool:
        """Whether a person can still approve it."""
        return self.state in PENDING

    @property
    def waiting(self) -> bool:
        """Whether nobody has decided about it yet."""
        return self.state == WriteState.WAITING

    def refuse(self, reason: str) -> None:
        """Mark the write as refused, and drop its text, which may be the reason."""
        self.state, self.reason, self.after, self.keywords = WriteState.REFUSED, reason, None, None
        self.evidence = Evidence()

    def wait(self, reason: str = "", rule: str = "") -> None:
        """Let the write wait for a person's decision."""
        self.state, self.reason, self.rule, self.proposed = WriteState.WAITING, reason, rule, True

    def repeat(self, write: "ReviewWrite") -> None:
        """Count a repetition of this write, and take over its reason, its evidence and the memory's version."""
        self.times += 1
        self.imports = [*self.imports, *write.imports] if self.imports and write.imports else []
        self.version, self.before = write.version, write.before
        self.reason, self.rule, self.evidence = write.reason, write.rule, write.evidence

    def join(self, reason: str) -> None:
        """Mark the write as a repetition of an earlier one, which keeps the text."""
        self.refuse(reason)
        self.state, self.proposed, self.rule = WriteState.JOINED, False, ""

    def to_json(self, *, public: bool = False) -> dict[str, Any]:
        """Return the JSON that is stored in the row or, if `public`, shown by the API."""
        values = {field.name: getattr(self, field.name) for field in fields(self)} | {"state": str(self.state)}
        values["evidence"] = self.evidence.public() if public else self.evidence.to_json()
        hidden = {name for name in _LEFT_OUT_WHEN_EMPTY if not values[name]} | (_INTERNAL if public else set())
        return {name: value for name, value in values.items() if name not in hidden}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], index: int = 0) -> "ReviewWrite":
        """Return a write from a row's JSON; `index` is for rows that lack one. Raises ValueError for an unknown
        state."""
        known = {field.name: stored[field.name] for field in fields(cls) if field.name in stored}
        known["evidence"] = Evidence.from_json(stored.get("evidence") or {})
        return cls(**{"index": index, **known, "state": WriteState(stored.get("state", WriteState.STAGED))})


def applied(writes: Iterable[ReviewWrite]) -> list[ReviewWrite]:
    """Return the writes that were saved and are in effect."""
    return [write for write in writes if write.state == WriteState.APPLIED]


def counts(writes: Iterable[ReviewWrite]) -> tuple[int, int]:
    """Return how many memories the writes, taken in order, save (add or update) and how many they remove. A memory
    that is changed twice counts once; one that is added and deleted again does not count."""
    net: dict[str, str] = {}
    for write in writes:
        key, before = write.key, net.get(write.key)
        if write.action != "delete":
            net[key] = "add" if before == "add" else write.action
        elif before == "add":
            del net[key]
        else:
            net[key] = "delete"
    removed = sum(1 for action in net.values() if action == "delete")
    return len(net) - removed, removed


if TYPE_CHECKING:
    _Column = models.JSONField[list[ReviewWrite], list[ReviewWrite]]
else:
    _Column = models.JSONField


class WritesField(_Column):
    """A JSONField whose value is a list of ReviewWrite; their JSON may be assigned, too."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return self.to_python(super().from_db_value(value, expression, connection))

    def to_python(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [w if isinstance(w, ReviewWrite) else ReviewWrite.from_json(w, at) for at, w in enumerate(value)]

    def get_prep_value(self, value: Any) -> Any:
        if isinstance(value, list):
            value = [write.to_json() if isinstance(write, ReviewWrite) else write for write in value]
        return super().get_prep_value(value)

    def value_to_string(self, obj: models.Model) -> Any:
        return self.get_prep_value(self.value_from_object(obj))

    def deconstruct(self) -> Any:
        # Migrations see a plain JSONField.
        name, _, args, keywords = super().deconstruct()
        return name, "django.db.models.JSONField", args, keywords

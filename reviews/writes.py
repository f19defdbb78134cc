"""A write of a review: what the model wanted to do to one memory, and what became of it. Rows keep writes as JSON;
`WritesField` is the column that turns them into this type and back."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from django.db import models

from memories.models import Evidence


class WriteState(models.TextChoices):
    """What became of a write."""

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
"""A person can still save these."""
_INTERNAL = {"key", "version", "left_version", "edited_by", "proposed", "more", "imports"}
_LEFT_OUT_WHEN_EMPTY = _INTERNAL - {"key", "version"} | {"edited", "rule", "evidence", "times"}


@dataclass(slots=True, kw_only=True)
class ReviewWrite:
    """One write, in the order of the model's calls. `key` names a stored memory by its number, or one that this review
    added (`new1`, `new2` …); `version` is the memory's when the review read it, `left_version` after the write.
    `proposed`: it waits or waited for a person, for `rule` unless the agent's settings say that all do."""

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
    more: Mapping[str, Any] = field(default_factory=dict)  # metadata, pinned, expires_at, where an import sets them
    imports: list[str] = field(default_factory=list)  # change sets of the imports that want it, if nothing else does
    state: WriteState = WriteState.STAGED
    reason: str = ""
    left_version: int | None = None
    edited: bool = False
    edited_by: str = ""
    rule: str = ""
    proposed: bool = False
    times: int = 0  # that it was wanted again while it waited
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def number(self) -> int:
        """The number of the memory it was stored as, else of the one that it names; 0 if there is none."""
        named = self.memory_id or self.key
        return int(named) if named.isdecimal() and len(named) < 10 else 0

    @property
    def pending(self) -> bool:
        """Whether a person can still save it."""
        return self.state in PENDING

    @property
    def waiting(self) -> bool:
        """Whether nobody has decided about it yet."""
        return self.state == WriteState.WAITING

    def refuse(self, reason: str) -> None:
        """Mark the write as one that cannot be applied. Its text is not kept, since that may be the reason."""
        self.state, self.reason, self.after, self.keywords = WriteState.REFUSED, reason, None, None
        self.evidence = Evidence()

    def wait(self, reason: str = "", rule: str = "") -> None:
        """Let the write wait until a person has decided about it."""
        self.state, self.reason, self.rule, self.proposed = WriteState.WAITING, reason, rule, True

    def repeat(self, write: "ReviewWrite") -> None:
        """Count that the same is wanted again, with the newest reason and evidence, and the memory as it is now."""
        self.times += 1
        self.imports = [*self.imports, *write.imports] if self.imports and write.imports else []
        self.version, self.before = write.version, write.before
        self.reason, self.rule, self.evidence = write.reason, write.rule, write.evidence

    def join(self, reason: str) -> None:
        """Mark the write as one that a person was asked about before. Its text is kept there."""
        self.refuse(reason)
        self.state, self.proposed, self.rule = WriteState.JOINED, False, ""

    def to_json(self, *, public: bool = False) -> dict[str, Any]:
        """Return what the row keeps or, if `public`, what the API shows."""
        values = {one.name: getattr(self, one.name) for one in fields(self)} | {"state": str(self.state)}
        values["evidence"] = self.evidence.public() if public else self.evidence.to_json()
        hidden = {name for name in _LEFT_OUT_WHEN_EMPTY if not values[name]} | (_INTERNAL if public else set())
        return {name: value for name, value in values.items() if name not in hidden}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any], index: int = 0) -> "ReviewWrite":
        """Return a write from a row; `index` is for rows without one. Raises ValueError for an unknown state."""
        known = {one.name: kept[one.name] for one in fields(cls) if one.name in kept}
        known["evidence"] = Evidence.from_json(kept.get("evidence") or {})
        return cls(**{"index": index, **known, "state": WriteState(kept.get("state", WriteState.STAGED))})


if TYPE_CHECKING:
    _Column = models.JSONField[list[ReviewWrite], list[ReviewWrite]]
else:
    _Column = models.JSONField


class WritesField(_Column):
    """A column of JSON whose value is a list of ReviewWrite. What is assigned may also be the JSON of writes."""

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
        # To the database it is JSON, and so it is to migrations.
        name, _, args, keywords = super().deconstruct()
        return name, "django.db.models.JSONField", args, keywords

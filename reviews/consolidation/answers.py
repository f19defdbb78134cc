"""Parsing model answers: strict about what is stored, lenient about fences and text around the JSON."""

from dataclasses import dataclass
from typing import Any

from memories.artifacts.paths import MEMORY_PATH, SUMMARY_PATH, is_skill_name, skill_path
from memories.model_json import objects_in
from memories.storable import storable_text
from reviews.errors import AnswerUnusable

MAX_SKILLS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionAnswer:
    """The notes on one session; both empty if it contains nothing durable."""

    raw_memory: str
    synopsis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisAnswer:
    """Documents by path, and the numbers of secrets redacted from them and of lines and skills dropped. Skills are
    dropped for an invalid or duplicate name, for being empty, or beyond MAX_SKILLS."""

    documents: dict[str, str]
    redacted: int = 0
    dropped: int = 0


def parse_extraction(text: str) -> ExtractionAnswer:
    """Raises AnswerUnusable."""
    data = _object(text, "raw_memory")
    return ExtractionAnswer(raw_memory=_text(data, "raw_memory"), synopsis=_text(data, "rollout_summary"))


def parse_synthesis(text: str) -> SynthesisAnswer:
    """Raises AnswerUnusable unless both documents are there. Skills that cannot be stored are dropped and counted."""
    data = _object(text, "memory_md")
    memory, summary = _text(data, "memory_md"), _text(data, "memory_summary")
    if not memory or not summary:
        raise AnswerUnusable("The model left a document empty.")
    given = data.get("skills") or []
    if not isinstance(given, list):
        raise AnswerUnusable("`skills` is not a list.")
    skills: dict[str, tuple[str, str]] = {}
    for skill in given:
        # An invalid name is refused rather than corrected.
        name, content = _string(skill, "name"), storable_text(_string(skill, "content")).strip()
        if is_skill_name(name) and content and name.casefold() not in skills and len(skills) < MAX_SKILLS:
            skills[name.casefold()] = skill_path(name), content
    documents = {MEMORY_PATH: memory, SUMMARY_PATH: summary} | dict(skills.values())
    return SynthesisAnswer(documents=documents, dropped=len(given) - len(skills))


def _object(text: str, key: str) -> dict[str, Any]:
    """Return the last JSON object in an answer, or directly within another one, that has the key, or else the first
    object. Raises AnswerUnusable."""
    found: dict[str, Any] | None = None
    for data in objects_in(text):
        for given in (*(value for value in data.values() if isinstance(value, dict)), data):
            if key in given or (found is None and given is data):
                found = given
    if found is None:
        raise AnswerUnusable("The model's answer is not a JSON object.")
    return found


def _text(data: dict[str, Any], key: str) -> str:
    """Return a text field; null counts as empty, since some models write that. Raises AnswerUnusable."""
    value = data.get(key, ...)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise AnswerUnusable(f"`{key}` is missing in the model's answer.")
    text = storable_text(value).strip()
    if text and not any(map(str.isalnum, text)):
        raise AnswerUnusable(f"`{key}` has no words: the model repeated the form of the answer.")
    return text


def _string(skill: Any, key: str) -> str:
    value = skill.get(key) if isinstance(skill, dict) else None
    return value.strip() if isinstance(value, str) else ""

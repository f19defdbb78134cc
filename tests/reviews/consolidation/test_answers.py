"""Text that models write around the requested JSON"""

import pytest

from reviews.consolidation.answers import ExtractionAnswer, parse_extraction, parse_synthesis
from reviews.errors import AnswerUnusable

NOTE = '{"raw_memory": "- Uses {braces}.", "rollout_summary": "S"}'


@pytest.mark.parametrize(
    "text",
    [
        NOTE,
        f"```json\n{NOTE}\n```",
        f"Here is {{the}} answer:\n```\n{NOTE}\n```\nShall I go on with {{x}}?",
        f'<think>{{"plan": 1}}</think>{NOTE}',
        f'A draft: {{"raw_memory": "- Draft", "rollout_summary": "D"}}\nBetter: {NOTE}',
        f"{NOTE}\n{NOTE}",
        f"[{NOTE}]",
        f'{{"result": {NOTE}}}',
        f'{{"thoughts": {{"a": 1}}, "answer": {NOTE}}} {{done}}',
        f"{{ // the notes\n{NOTE[1:]}",
        NOTE.replace("}.", "},.").replace('S"}', 'S",\n}'),
    ],
)
def test_the_object_is_found_within_other_text(text: str) -> None:
    answer = parse_extraction(text)
    assert (answer.raw_memory.replace("},", "}"), answer.synopsis) == ("- Uses {braces}.", "S")


def test_trailing_commas_are_removed_from_the_syntax_and_kept_in_strings() -> None:
    answer = parse_synthesis(
        '{"memory_md": "# M [a, ], {b, }", "memory_summary": "S\\",}", "skills": [{"name": "a", "content": "x",},],}'
    )
    assert answer.documents == {
        "MEMORY.md": "# M [a, ], {b, }",
        "memory_summary.md": 'S",}',
        "skills/a/SKILL.md": "x",
    }


def test_null_is_an_empty_answer() -> None:
    nothing = ExtractionAnswer(raw_memory="", synopsis="")
    assert parse_extraction('{"raw_memory": null, "rollout_summary": null}') == nothing


def test_json_within_a_skill_is_not_taken_for_the_answer() -> None:
    skill = '{"memory_md": "# Not this", "memory_summary": "Nor this"}'.replace('"', '\\"')
    answer = parse_synthesis(
        f'{{"memory_md": "# M", "memory_summary": "S", "skills": [{{"name": "a", "content": "{skill}"}}]}} {{done}}'
    )
    assert (answer.documents["MEMORY.md"], list(answer.documents)[2]) == ("# M", "skills/a/SKILL.md")


@pytest.mark.parametrize("text", ["{" * 100_000, '{"memory_md": "# M", "memory_summary": "S", "skills": [{"name": "a"'])
def test_a_truncated_answer_is_unusable(text: str) -> None:
    with pytest.raises(AnswerUnusable):
        parse_synthesis(text)


@pytest.mark.parametrize(
    "text", ['{"raw_memory": "…", "rollout_summary": "…"}', '{"raw_memory": "- ...", "rollout_summary": ""}']
)
def test_the_form_of_the_answer_without_words_is_unusable(text: str) -> None:
    with pytest.raises(AnswerUnusable, match="no words"):
        parse_extraction(text)


def test_documents_in_other_scripts_have_words() -> None:
    assert parse_extraction('{"raw_memory": "- 素食者", "rollout_summary": "नमस्ते"}').synopsis == "नमस्ते"

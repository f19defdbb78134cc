"""Warnings of `manage.py check` about edited prompt files."""

from typing import Any

from django.core import checks

from prompts.files import prompt_problems

MEANWHILE = "Another text is used meanwhile."


def prompt_warnings(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Return a warning for each prompt file that cannot be used."""
    return [checks.Warning(problem, hint=MEANWHILE, id="daybook.W020") for problem in prompt_problems()]

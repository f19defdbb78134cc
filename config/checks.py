"""Checks of `manage.py check` in addition to Django's: unusable prompt files, and the settings for TLS, which Django
checks only if it finds its middlewares by name."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register

from prompts.files import prompt_problems

FALLBACK_HINT = "Another text is used meanwhile."


@register()
def check_prompts(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[CheckMessage]:
    """Return a warning for each edited prompt file that is unusable."""
    return [Warning(problem, hint=FALLBACK_HINT, id="daybook.W020") for problem in prompt_problems()]


@register(Tags.security, deploy=True)
def check_transport(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[CheckMessage]:
    """Check the settings for TLS. The proxy redirects from http (deploy/)."""
    if settings.CSRF_COOKIE_SECURE:
        return []
    hint = "Set https origins of DAYBOOK_ALLOWED_HOSTS in DAYBOOK_TRUSTED_ORIGINS."
    return [Warning("Pages and cookies are sent over http, too.", hint=hint, id="daybook.W016")]

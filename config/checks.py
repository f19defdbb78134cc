"""Checks of `manage.py check` in addition to Django's: unusable prompt files, and deployment settings. Django looks for
its middlewares by name, but Daybook uses subclasses, which API requests skip (config.serving.middleware). Its three
checks by name are silenced in the settings; those here check the classes, and the settings that Django checks only if
it finds the name."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.module_loading import import_string

from config.serving.middleware import RequestBoundary
from prompts.files import prompt_problems

FALLBACK_HINT = "Another text is used meanwhile."
_REQUIRED = {
    SecurityMiddleware: "daybook.W001",
    RequestBoundary: "daybook.W002",  # sets X-Frame-Options
    CsrfViewMiddleware: "daybook.W003",
}


@register(Tags.security, deploy=True)
def check_middlewares(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[CheckMessage]:
    """Check that a subclass of each middleware that Django looks for by name is installed."""
    classes = [import_string(name) for name in settings.MIDDLEWARE]
    return [
        Warning(f"No middleware is a {base.__name__}.", id=number)
        for base, number in _REQUIRED.items()
        if not any(issubclass(middleware, base) for middleware in classes)
    ]


@register()
def check_prompts(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[CheckMessage]:
    """Return a warning for each edited prompt file that is unusable."""
    return [Warning(problem, hint=FALLBACK_HINT, id="daybook.W020") for problem in prompt_problems()]


@register(Tags.security, deploy=True)
def check_transport(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[CheckMessage]:
    """Check the settings for TLS. The proxy redirects from http (deploy/)."""
    warnings: list[CheckMessage] = []
    if not settings.SECURE_HSTS_SECONDS:
        hint = "SECURE_HSTS_SECONDS"
        warnings.append(Warning("Pages do not tell browsers to use https only.", hint=hint, id="daybook.W004"))
    if not settings.CSRF_COOKIE_SECURE:
        hint = "Set https origins of DAYBOOK_ALLOWED_HOSTS in DAYBOOK_TRUSTED_ORIGINS."
        warnings.append(Warning("Cookies are sent over http, too.", hint=hint, id="daybook.W016"))
    return warnings

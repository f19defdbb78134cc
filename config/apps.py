from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Daybook"

    def ready(self) -> None:
        from django.conf import settings
        from django.core import checks

        from config.checks import prompt_warnings
        from prompts.files import use_folder

        use_folder(settings.DAYBOOK_PROMPTS)
        checks.register(prompt_warnings)

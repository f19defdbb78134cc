from django.apps import AppConfig

from config.environment import ConfigurationError
from memories.providers import ProviderUnusable, providers


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Daybook"

    def ready(self) -> None:
        """Load what the environment names and the settings could not load yet. Raises ConfigurationError."""
        try:
            providers()
        except ProviderUnusable as error:
            raise ConfigurationError(
                f"DAYBOOK_MEMORY_PROVIDERS is {error}; allowed are dotted paths of provider classes."
            ) from error

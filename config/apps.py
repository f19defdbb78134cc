from django.apps import AppConfig
from django.conf import settings
from django.utils.module_loading import import_string

from config.environment import ConfigurationError
from config.serving import collector
from config.storages import require_storage
from memories.providers import ProviderUnusable, providers
from prompts.files import use_folder


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Daybook"

    def ready(self) -> None:
        """Load what the environment names and what needs the app registry. Raises ConfigurationError."""
        # Models can be imported only now. Importing the checks registers them.
        from config import checks as deployment_checks  # noqa: F401
        from config.processes.queue_payloads import install
        from gateway.upstream.in_process import unusable

        install()
        use_folder(settings.DAYBOOK_PROMPTS)
        try:
            providers()
        except ProviderUnusable as error:
            raise ConfigurationError(
                f"DAYBOOK_MEMORY_PROVIDERS is {error}; allowed are dotted paths of provider classes."
            ) from error
        require_storage()
        if settings.REDIS_URL:
            # By name, since only installations with Redis need its packages.
            why = import_string("memories.messaging.redis_clients.url_problem")(settings.REDIS_URL)
            if why:
                raise ConfigurationError(f"REDIS_URL is a value that is not shown; its options can't be used: {why}.")
        folder = settings.EMBEDDING_PATH
        if folder and settings.EMBEDDING_UPSTREAM:
            raise ConfigurationError("DAYBOOK_EMBEDDING_PATH and DAYBOOK_EMBEDDING_UPSTREAM are both set; set one.")
        if folder and (reason := unusable(folder)):
            raise ConfigurationError(f"DAYBOOK_EMBEDDING_PATH is {folder}; {reason}.")
        collector.resume()

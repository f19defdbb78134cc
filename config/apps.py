from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Daybook"

    def ready(self) -> None:
        # Models can be imported only now. Importing the checks registers them.
        from config import checks  # noqa: F401
        from config.queue_payloads import install

        install()

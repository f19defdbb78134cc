from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only now.
        from gateway.thread_reader import read_turns  # noqa: PLC0415
        from memories.threads import register_reader  # noqa: PLC0415

        register_reader(read_turns)

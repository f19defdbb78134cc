from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_out


class GatewayConfig(AppConfig):
    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only now.
        from gateway.portability import erase_traces, export_conversations  # noqa: PLC0415
        from gateway.session_names import names  # noqa: PLC0415
        from gateway.sockets import close_login  # noqa: PLC0415
        from gateway.thread_reader import read_turns  # noqa: PLC0415
        from memories.forgetting import register_eraser  # noqa: PLC0415
        from memories.portability import register_exporter  # noqa: PLC0415
        from memories.threads import register_reader  # noqa: PLC0415
        from memories.whence import register_names  # noqa: PLC0415

        register_reader(read_turns)
        register_names(names)
        user_logged_out.connect(close_login, dispatch_uid="gateway.sockets")
        register_exporter("conversations", export_conversations)
        register_eraser(erase_traces)

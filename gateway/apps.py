from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in, user_logged_out


class GatewayConfig(AppConfig):
    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only now.
        from gateway.chat.session_names import names
        from gateway.keys import key_facts
        from gateway.portability import erase_traces, export_conversations
        from gateway.sign_in import signed_in, signed_out
        from gateway.sockets import close_login
        from gateway.thread_reader import read_turns
        from memories.forgetting import Eraser, register_eraser
        from memories.health import on_health
        from memories.portability import register_exporter
        from memories.provenance import register_names
        from memories.threads import register_reader

        register_reader(read_turns)
        on_health(key_facts)
        register_names(names)
        user_logged_out.connect(close_login, dispatch_uid="gateway.sockets")
        user_logged_in.connect(signed_in, dispatch_uid="gateway.sign_in")
        user_logged_out.connect(signed_out, dispatch_uid="gateway.sign_in")
        register_exporter("conversations", export_conversations)
        register_eraser(Eraser(erase=erase_traces))

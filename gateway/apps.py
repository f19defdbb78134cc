from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.db.models.signals import post_migrate  # noqa: TID251 - one of the command, not of a model


class GatewayConfig(AppConfig):
    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only now.
        from gateway.accounts.sign_in import signed_in, signed_out
        from gateway.attachments.uses import uses_release
        from gateway.chat.session_list import provenance_names
        from gateway.embeddings import searched_vector
        from gateway.keys import key_facts, key_names
        from gateway.oauth.connections import erase_tokens
        from gateway.portability import erase_traces, export_conversations
        from gateway.runs.closing import read_turns
        from gateway.runs.ingested import STORE
        from gateway.sessions.message_index import triggers_ensure
        from gateway.sockets import close_login
        from memories.api.export import register_exporter
        from memories.forgetting import Eraser, register_eraser
        from memories.health import register_facts_reader
        from memories.history.provenance import key_names_reader, names_reader
        from memories.imports.conversations import conversation_store
        from memories.recall.query_vectors import query_embedder
        from memories.recall.threads import thread_reader

        thread_reader.register(read_turns)
        query_embedder.register(searched_vector)
        conversation_store.register(STORE)
        register_facts_reader(key_facts)
        names_reader.register(provenance_names)
        key_names_reader.register(key_names)
        user_logged_out.connect(close_login, dispatch_uid="gateway.sockets")
        user_logged_in.connect(signed_in, dispatch_uid="gateway.accounts.sign_in")
        user_logged_out.connect(signed_out, dispatch_uid="gateway.accounts.sign_in")
        register_exporter("conversations", export_conversations)
        register_eraser(Eraser(erase=erase_traces, erase_owner=erase_tokens))
        register_eraser(Eraser(erase=lambda owner_id, books: (), erase_owner=uses_release))
        post_migrate.connect(triggers_ensure, sender=self, dispatch_uid="gateway.sessions.message_index")

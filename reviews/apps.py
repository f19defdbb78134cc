from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "reviews"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only now.
        from gateway.hooks import on_turn_completed
        from memories.changes import UndoListener, on_undone
        from memories.health import on_health
        from reviews.consolidation.connections import consolidation_connect
        from reviews.health import review_facts
        from reviews.schedule import after_turn
        from reviews.undo import lock_review, note_undone

        on_turn_completed(after_turn)
        consolidation_connect()
        on_undone(UndoListener(lock=lock_review, undone=note_undone))
        on_health(review_facts)

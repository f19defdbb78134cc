from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "reviews"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only now.
        from gateway.chat.held_notes import register_held
        from gateway.hooks import on_session_forgotten, on_turn_completed
        from memories.changes import UndoListener, on_undone
        from memories.evidence import Keeper, register_keeper
        from memories.forgetting import Eraser, register_eraser
        from memories.health import on_health
        from memories.portability import register_exporter
        from memories.provenance import register_reviewed
        from reviews.approvals import imported_withdraw
        from reviews.consolidation.hooks import consolidation_connect
        from reviews.forgetting import erase_reviews, export_reviews, pass_over_sessions, session_was_forgotten
        from reviews.health import review_facts
        from reviews.held_notes import held_of_review, held_of_session
        from reviews.proposals import proposals_keep
        from reviews.schedule import after_turn
        from reviews.turns_read import turns_of
        from reviews.undo import lock_review, note_undone

        on_turn_completed(after_turn)
        consolidation_connect()
        on_undone(UndoListener(lock=lock_review, undone=note_undone))
        on_health(review_facts)
        register_keeper(Keeper(keep=proposals_keep, withdraw=imported_withdraw))
        register_held(held_of_session, held_of_review)
        register_reviewed(turns_of)
        on_session_forgotten(session_was_forgotten)
        register_eraser(Eraser(pass_over=pass_over_sessions, erase=erase_reviews))
        register_exporter("reviews", export_reviews)

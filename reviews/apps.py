from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "reviews"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only now.
        from gateway.chat.held_notes import held_of_review, held_of_session
        from gateway.hooks import review_position, sessions_forgotten, turn_completed
        from memories.api.export import register_exporter
        from memories.evidence import ProposalStore, proposal_store
        from memories.forgetting import Eraser, register_eraser
        from memories.health import register_facts_reader
        from memories.history.provenance import reviewed_turns_reader
        from memories.history.undo import UndoListener, register_undo_listener
        from reviews import held_notes
        from reviews.approvals import imported_withdraw
        from reviews.consolidation import clear
        from reviews.consolidation.commands import register_commands
        from reviews.consolidation.health import consolidation_facts, export_consolidation
        from reviews.forgetting import erase, export_reviews, mark_sessions_read, sessions_were_forgotten
        from reviews.health import review_facts
        from reviews.proposals import proposals_keep
        from reviews.schedule import after_turn, covered_seq
        from reviews.selectors import turns_of
        from reviews.undo import lock_review, record_documents_undone, record_undone

        turn_completed.register(after_turn)
        review_position.register(covered_seq)
        register_commands()
        sessions_forgotten.register(sessions_were_forgotten)
        register_undo_listener(UndoListener(lock=clear.lock_cleared, undone=clear.record_clear_undone))
        register_undo_listener(UndoListener(undone=record_documents_undone))
        register_undo_listener(UndoListener(lock=lock_review, undone=record_undone))
        register_eraser(Eraser(mark_processed=mark_sessions_read, erase=erase))
        register_exporter("consolidation", export_consolidation)
        register_exporter("reviews", export_reviews)
        register_facts_reader(consolidation_facts)
        register_facts_reader(review_facts)
        proposal_store.register(ProposalStore(keep=proposals_keep, withdraw=imported_withdraw))
        held_of_session.register(held_notes.of_session)
        held_of_review.register(held_notes.of_review)
        reviewed_turns_reader.register(turns_of)

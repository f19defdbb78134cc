"""What consolidation registers with the apps below when Django starts."""

from gateway.hooks import on_session_forgotten
from memories.changes import UndoListener, on_undone
from memories.forgetting import Eraser, register_eraser
from memories.health import on_health
from memories.portability import register_exporter
from reviews.consolidation.clear import note_clear_undone, session_was_forgotten
from reviews.consolidation.commands import register_commands
from reviews.consolidation.forgetting import erase_consolidation, pass_over_extractions
from reviews.consolidation.health import consolidation_facts, export_consolidation
from reviews.consolidation.withdrawal import withdrawn_lock


def consolidation_connect() -> None:
    """Fill the `/memory` table, and listen to forgetting and undoing."""
    register_commands()
    on_session_forgotten(session_was_forgotten)
    on_undone(UndoListener(lock=withdrawn_lock, undone=note_clear_undone))
    register_eraser(Eraser(pass_over=pass_over_extractions, erase=erase_consolidation))
    register_exporter("consolidation", export_consolidation)
    on_health(consolidation_facts)

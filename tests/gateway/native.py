"""Paths of the native API."""

from gateway.models import Session


def turns_path(session: Session) -> str:
    return f"/api/sessions/{session.pk}/turns"

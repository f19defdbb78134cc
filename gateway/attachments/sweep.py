"""Deletes files that nothing uses any more, in the worker: of sessions that were deleted, of owners who are gone, and
of requests whose message was never stored. The row goes after the file, so what fails or dies in between is done
again."""

import logging
from time import monotonic

from django.utils import timezone

from gateway.attachments.files import file_delete
from gateway.attachments.uses import deletion_begin, deletion_end, deletion_retry
from gateway.models import Attachment, AttachmentUse

SWEEP_SECONDS = 5.0
_AT_ONCE = 200
logger = logging.getLogger("daybook.attachments")


def attachments_sweep() -> None:
    """Run one sweep. It is idempotent and safe in several workers."""
    until = monotonic() + SWEEP_SECONDS
    now = timezone.now()
    unused = AttachmentUse.objects.filter(session=None, expires_at__lte=now).order_by("expires_at")
    for attachment_id in dict.fromkeys(unused.values_list("attachment_id", flat=True)[:_AT_ONCE]):
        if monotonic() >= until:
            return
        file = deletion_begin(attachment_id, now)
        if file is not None and not _delete(file):
            return
    while monotonic() < until and (file := deletion_retry(timezone.now())):
        if not _delete(file):
            return


def _delete(file: Attachment) -> bool:
    """Returns False where the storage does not do it: the other files wait, too."""
    try:
        file_delete(file.owner_id, file.sha256)
    except Exception:  # each storage has its own errors; the row says that it is to be done again
        logger.exception("an attachment could not be deleted; it is tried again in a minute")
        return False
    deletion_end(file)
    return True

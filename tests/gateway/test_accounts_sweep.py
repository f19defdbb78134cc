"""accounts_sweep: deletes expired logins, old failed sign-ins, and keys that were revoked long ago"""

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.sessions.models import Session as LoginSession
from django.utils import timezone
from pytest_django import Settings

from config.processes.worker import SWEEPS
from gateway.keys import api_key_revoke
from gateway.models import ApiKey
from gateway.sweep import accounts_sweep
from memories.models import AuditEntry, Owner
from tests.factories import key_make

pytestmark = pytest.mark.django_db


def test_the_worker_runs_the_sweep() -> None:
    assert accounts_sweep in SWEEPS


def test_expired_logins_are_deleted() -> None:
    now = timezone.now()
    LoginSession.objects.create(session_key="ended", session_data="", expire_date=now - timedelta(seconds=1))
    LoginSession.objects.create(session_key="lasts", session_data="", expire_date=now + timedelta(hours=1))
    accounts_sweep()
    assert [row.session_key for row in LoginSession.objects.all()] == ["lasts"]


def test_failed_sign_ins_that_no_longer_count_are_deleted() -> None:
    for name, minutes in (("old", 16), ("recent", 14)):
        attempt = AccessAttempt.objects.create(username=name, failures_since_start=3)
        AccessAttempt.objects.filter(pk=attempt.pk).update(attempt_time=timezone.now() - timedelta(minutes=minutes))
    accounts_sweep()
    assert [row.username for row in AccessAttempt.objects.all()] == ["recent"]


def test_keys_are_deleted_some_days_after_revocation_and_stay_in_the_audit_log(
    alice: Owner, settings: Settings
) -> None:
    settings.REVOKED_KEY_DAYS = 10
    old, recent, valid = (key_make(alice)[0] for _ in range(3))
    for key, days in ((old, 11), (recent, 9)):
        api_key_revoke(key)
        ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now() - timedelta(days=days))
    accounts_sweep()
    assert set(ApiKey.objects.all()) == {recent, valid}
    recorded = AuditEntry.objects.filter(object_id=str(old.pk)).order_by("pk").values_list("action", flat=True)
    assert list(recorded) == ["key_create", "key_revoke"]

"""The runs of a worker that has ended are resumed by the next one, without waiting for their leases to expire"""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from config.processes.worker import SweepLoop
from gateway import jobs
from memories.ids import uuid7
from memories.models import Lease, Owner
from reviews.consolidation import runs
from reviews.models import ConsolidationRun
from tests.reviews.consolidation.rows import request, talk

pytestmark = [pytest.mark.usefixtures("consolidation_on"), pytest.mark.any_database]
ELSEWHERE = "elsewhere:7"


@pytest.fixture
def run(alice: Owner) -> ConsolidationRun:
    """A run that a worker executes."""
    talk(alice)
    scheduled = request(alice)
    assert runs.claim(scheduled.pk) is not None
    assert runs.recover() == 0
    return scheduled


def test_a_worker_that_stops_releases_what_it_consolidates(run: ConsolidationRun) -> None:
    assert jobs.lease_take(runs.lease_name(uuid7()), seconds=60, holder=ELSEWHERE)
    assert jobs.lease_take("webhooks", seconds=60), "its job may be executed by another worker"
    SweepLoop([])._end()
    assert sorted(name.split(":")[0] for name in Lease.objects.values_list("name", flat=True)) == [
        "consolidation",
        "webhooks",
    ]
    assert runs.recover() == 1
    assert runs.claim(run.pk) is not None


def test_the_end_of_a_worker_is_noticed(run: ConsolidationRun) -> None:
    """With a server database the worker may be on another machine, so its lease has to expire."""
    Lease.objects.update(holder=f"here:7:{uuid7()}")  # a process that does not exist
    assert runs.recover() == (1 if connection.vendor == "sqlite" else 0)


def test_an_unknown_holder_keeps_its_lease(run: ConsolidationRun) -> None:
    Lease.objects.update(holder=ELSEWHERE)
    assert runs.recover() == 0


def test_forks_of_a_worker_take_leases_in_its_name(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_holder", "")
    own = runs.lease_holder()
    runs.leases_share()
    monkeypatch.setattr("gateway.runs.leases._current", None)  # as in a fork, which has another name
    assert runs.lease_holder() == own


def test_a_job_that_a_stopped_worker_had_fetched_is_queued_again_by_the_next_one(
    alice: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(alice)
    request(alice)
    assert runs.recover() == 0
    monkeypatch.setattr(jobs, "_started_at", None)
    jobs.worker_starts()
    assert [runs.recover(), runs.recover()] == [1, 0]


def test_a_run_that_waited_for_the_worker_of_a_stopped_one_continues_with_the_next_sweep(run: ConsolidationRun) -> None:
    runs.cancel(run, "Stopped by a person.")
    following = request(run.owner)
    assert runs.claim(following.pk) is None
    assert runs.recover() == 0, "its job could not claim it"
    runs.leases_leave()
    assert runs.recover() == 1


def test_a_lease_that_is_over_leaves_the_list(run: ConsolidationRun) -> None:
    now = timezone.now()
    of_earlier_version = {"name": f"{runs.lease_name(uuid7())}:extraction", "token": uuid7(), "holder": ELSEWHERE}
    Lease.objects.create(**of_earlier_version, expires_at=now - timedelta(seconds=1))
    Lease.objects.create(name="webhooks", token=uuid7(), expires_at=now - timedelta(days=1))
    runs.recover()
    assert sorted(Lease.objects.values_list("name", flat=True)) == [runs.lease_name(run.book_id), "webhooks"]


def test_a_run_of_a_worker_of_an_earlier_version_is_left_to_it(run: ConsolidationRun) -> None:
    Lease.objects.update(name=f"{runs.lease_name(run.book_id)}:extraction", holder=ELSEWHERE)
    assert runs.recover() == 0
    Lease.objects.update(expires_at=timezone.now())
    assert runs.recover() == 1

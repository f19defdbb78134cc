"""The runs of a worker that has ended are resumed by the next one, without waiting for their leases to expire"""

import pytest
from django.db import connection

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

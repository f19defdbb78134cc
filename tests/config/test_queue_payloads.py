"""Jobs in the queue are signed JSON, and nothing else is accepted."""

import pickle
from datetime import UTC, datetime
from queue import Queue
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django_q import core_signing
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signing import BadSignature, SignedPackage
from django_q.status import Stat
from django_q.tasks import async_task

TASK: dict[str, Any] = {
    "id": "1",
    "func": "reviews.tasks.review_execute",
    "args": ["an id", 3],
    "kwargs": {"again": None},
    "started": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
}


class Pickled:
    """The serializer of earlier versions, and of an attacker."""

    @staticmethod
    def dumps(package: Any) -> bytes:
        return pickle.dumps(package)


def test_a_package_is_json_and_round_trips() -> None:
    signed = SignedPackage.dumps(TASK, False)
    assert core_signing.b64_decode(signed.split(":")[0].encode()).startswith(b'{"id":"1"')
    assert SignedPackage.loads(signed) == TASK
    assert SignedPackage.loads(SignedPackage.dumps(TASK, True)) == TASK


def test_a_correctly_signed_pickle_is_refused() -> None:
    signed = core_signing.dumps(TASK, key=Conf.SECRET_KEY, salt=Conf.PREFIX, serializer=Pickled)
    with pytest.raises(BadSignature):
        SignedPackage.loads(signed)


def test_values_that_are_not_plain_are_refused_when_the_job_is_created() -> None:
    with pytest.raises(TypeError, match="cannot contain a object"):
        SignedPackage.dumps({"args": [object()]})


@pytest.mark.skipif(bool(settings.REDIS_URL), reason="the queue is in Redis")
@pytest.mark.django_db
def test_a_job_in_the_table_is_json() -> None:
    async_task("reviews.tasks.review_execute", str(uuid4()), q_options={"save": False})
    (row,) = OrmQ.objects.all()
    assert row.task["func"] == "reviews.tasks.review_execute"
    assert core_signing.b64_decode(row.payload.split(":")[0].encode()).startswith(b"{")


def test_the_status_of_a_cluster_round_trips() -> None:
    sentinel = SimpleNamespace(
        parent_pid=1, pid=2, cluster_id=uuid4(), broker=SimpleNamespace(), tob=TASK["started"], reincarnations=0,
        status=lambda: Conf.IDLE, monitor=None, pusher=None, pool=[], result_queue=Queue(), task_queue=Queue(),
    )  # fmt: skip
    read = SignedPackage.loads(SignedPackage.dumps(Stat(sentinel), True))
    assert read.cluster_id == sentinel.cluster_id
    assert isinstance(read, Stat)
    assert (read.status, read.tob, read.pid) == ("Idle", TASK["started"], 1)

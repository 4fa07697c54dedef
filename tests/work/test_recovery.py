"""Tasks that end, fail, or lose their worker: who may hold them when, through the face."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run, translated
from holdfast.testing import Clock
from kernel.steps import at_once, node, seconds, start, start_flow, value
from work.tasks import audit, claim_next, held, recover, report, rows, task

DB = Connection[Any]
OVERLAPS = """
select l.resource_id
  from work.audit_logs l
  join lateral (select n.event_type from work.audit_logs n
                 where n.resource_id = l.resource_id and n.id > l.id order by n.id limit 1) after on true
 where l.event_type = 'claimed' and after.event_type = 'claimed'
"""


def test_one_call_recovers_all_that_ran_out(db: DB, clock: Clock) -> None:
    """W-35, W-45: after a mass failure, more than a chunk of tasks and of steps of runs"""
    run(db, calls.start_tasks([{"name": "mail"}] * 900))
    for _ in range(3):
        start_flow(db, *(node(f"step{number}") for number in range(100)))
    claimed = run(db, calls.claim_steps("gone", batch=10_000, lease=seconds(30)))
    late = run(db, calls.claim_steps("gone", "other", lease=seconds(90)))
    clock.advance(seconds(60))

    assert (len(claimed), late) == (1200, [])
    assert (recover(db), recover(db)) == (1200, 0)
    assert value(db, "select count(*) from holdfast.steps where lease_id is not null") == 0
    assert run(db, calls.violations()) == []


def test_what_is_done_is_never_picked_up_again(db: DB, clock: Clock) -> None:
    """W-31: nor reset, by hand or by function"""
    task_id = start(db)
    report(db, held(db), result={"n": 1})

    clock.advance(timedelta(days=400))
    run(db, calls.upkeep())

    assert (claim_next(db), recover(db)) == (None, 0)
    row = task(db, task_id)
    assert (row["status"], row["output"], row["locked_at"]) == ("done", {"n": 1}, None)
    with pytest.raises(errors.RefusedError):
        run(db, calls.retry(str(task_id)))
    with pytest.raises(errors.BadInput), translated():
        db.execute("update work.tasks set status = 'pending'")


def test_what_failed_stays_so_until_a_person_resets_it_which_is_audited(db: DB, clock: Clock) -> None:
    """W-32"""
    task_id = start(db)
    report(db, held(db, "w"), "fail", error="no")
    clock.advance(timedelta(days=1))
    assert (task(db, task_id)["status"], claim_next(db)) == ("error", None)

    run(db, calls.retry(str(task_id), "the shop is open again"))

    who = value(db, "select session_user::text")
    expected = [("claimed", "running", "w"), ("failed", "error", "w"), ("reopened", "pending", who)]
    assert audit(db, task_id) == expected
    (log,) = rows(db, "select metadata from work.audit_logs where event_type = 'reopened'")
    assert log["metadata"]["reason"] == "the shop is open again"
    assert held(db)["try_count"] == 2


def test_a_task_whose_worker_fell_silent_is_pending_again_free_and_at_once(db: DB, clock: Clock) -> None:
    """W-35 W-37 W-38 W-40 W-51"""
    task_id = start(db)
    tries = []
    for worker in ("a", "b"):
        tries.append(held(db, worker)["try_count"])
        assert recover(db) == 0
        clock.advance(seconds(31))
        assert recover(db) == 1
        assert rows(db, "select id from work.tasks where status = 'running' and lease_timeout < holdfast.clock()") == []

    row = task(db, task_id)
    assert (row["status"], row["lease_owner"], row["lease_timeout"], row["lease_id"], row["locked_at"]) == (
        "pending", None, None, None, None,
    )  # fmt: skip
    assert [*tries, held(db, "c")["try_count"]] == [1, 2, 3]


def test_a_task_that_lost_its_last_worker_too_is_an_error_that_says_so(db: DB, clock: Clock) -> None:
    """W-36 W-58 C-63"""
    task_id = start(db)
    for _ in range(3):
        held(db, "host:1")
        clock.advance(seconds(31))
        recover(db)

    row = task(db, task_id)
    assert (row["status"], row["try_count"], row["max_tries"], row["failures"]) == ("error", 3, 3, 3)
    assert row["error"]["type"] == "LeaseExpired"
    assert row["error"]["message"].startswith("Maximum retry attempts exceeded: worker host:1 was silent")
    assert claim_next(db) is None


def test_a_task_longer_than_its_lease_is_executed_once_when_it_is_renewed(db: DB, clock: Clock) -> None:
    """W-57: three times its lease"""
    task_id = start(db)
    claimed = held(db, "a")
    for _ in range(9):
        clock.advance(seconds(10))
        run(db, calls.renew_leases("a", [claimed["lease_id"]], lease=seconds(30)))
        assert (recover(db), claim_next(db, "b")) == (0, None)

    assert report(db, claimed) == ["done"]
    assert task(db, task_id)["try_count"] == 1


def test_a_worker_that_lost_its_lease_cannot_report(db: DB, clock: Clock) -> None:
    """W-61: paused past its lease while another completes"""
    task_id = start(db)
    late = held(db, "a")
    clock.advance(seconds(31))
    recover(db)
    report(db, held(db, "b"), result="by b")

    assert report(db, late, result="by a") == []

    assert task(db, task_id)["output"] == "by b"


def test_workers_that_claim_at_once_never_hold_a_task_together(db: DB, dsn: str) -> None:
    """W-39: by the audit log, with every third task lost to a lease that ran out at once"""
    for _ in range(60):
        start(db)

    def work(name: str) -> Callable[[DB], None]:
        def until_empty(own: DB) -> None:
            while (claimed := claim_next(own, name)) is not None:
                if claimed["id"] % 3 == 0 and claimed["try_count"] == 1:
                    own.execute("update holdfast.steps set lease_until = '2000-01-01' where id = %s", [claimed["id"]])
                    recover(own)
                else:
                    report(own, claimed)

        return until_empty

    at_once(dsn, *(work(f"w{n}") for n in range(4)))

    assert rows(db, OVERLAPS) == []
    assert rows(db, "select status, count(*) as n from work.tasks group by 1") == [{"status": "done", "n": 60}]

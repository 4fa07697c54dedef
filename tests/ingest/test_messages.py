"""The document's messages, as rows, and how batches are cut and shared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import psycopg
import pytest

from holdfast import Holdfast
from holdfast.models import Continue, Done, Retry
from holdfast.testing import Clock, drain
from ingest.runs import DB, claim, define, facts, fail_for_good, page, put, run_of, settle
from ingest.shop import TABLE, Order, Shop, feed_of, names, order, table

WRITES = """
create table public.writes (rows int);
create function public.count_rows() returns trigger language plpgsql as $$
begin insert into public.writes select count(*) from n; return null; end $$;
create trigger counted after insert on public.orders referencing new table as n
  for each statement execute function public.count_rows();
"""


def test_messages_carry_what_the_document_lists_and_one_trace(db: DB) -> None:
    """P-80, P-145 to P-148: delivery count, dead letter, ids that tell a duplicate"""
    define(db)
    run_id = run_of(db, 2)
    trace = facts(db, run_id)["trace_id"]
    items = db.execute(
        "select message_id, body, delivery_count, state from ingest.messages where queue = 'work-items' order by 1"
    ).fetchall()
    assert [each[0] for each in items] == [f"{run_id}:partition-{n}:0" for n in range(2)]
    assert items[1][1].keys() >= {
        "type", "runId", "traceId", "partitionId", "min", "max", "estimated", "offset", "limit", "updatedFrom",
        "updatedTo",
    }  # fmt: skip
    assert (items[1][1]["min"], items[1][1]["max"], items[1][1]["limit"]) == (100, 200, 30)
    (step,) = claim(db, "page")
    with db.transaction():
        put(db, step, ["a"])
        settle(db, step, Done({"records": 1}))
    fail_for_good(db)
    done = db.execute("select body from ingest.messages where queue = 'work-done' order by at").fetchall()
    fields = {"type", "runId", "traceId", "workerId", "partitionId", "recordsProcessed", "status", "error"}
    assert [body.keys() for (body,) in done] == [fields, fields]
    assert [body["status"] for (body,) in done] == ["completed", "failed"]
    traces = db.execute(
        "select trace_id from ingest.messages union select trace_id from ingest.events"
        " union select body ->> 'traceId' from ingest.messages"
    ).fetchall()
    assert traces == [(trace,)]
    dead = db.execute("select delivery_count, state from ingest.messages where state = 'dead'").fetchall()
    assert dead == [(3, "dead")]


def test_a_partition_is_one_message_with_the_offset_of_its_next_page(db: DB) -> None:
    """P-69, P-80, P-145: queued between two pages, locked while it is read, scheduled while a failure backs off"""
    define(db)
    run_id = run_of(db, 1)
    items = "select message_id, state, delivery_count from ingest.messages where queue = 'work-items'"
    (step,) = claim(db, "page")
    page(db, step, [f"a{n:02}" for n in range(30)], offset=30)
    assert db.execute(items).fetchall() == [(f"{run_id}:partition-0:30", "queued", 0)]
    (step,) = claim(db, "page")
    assert db.execute(items).fetchall() == [(f"{run_id}:partition-0:30", "locked", 1)]
    settle(db, step, Retry("the source answered 502", timedelta(minutes=1)))
    assert db.execute(items).fetchall() == [(f"{run_id}:partition-0:30", "scheduled", 1)]
    assert claim(db, "page") == []


def test_other_moves_of_a_run_are_refused(db: DB) -> None:
    """P-20: a plain UPDATE too; tests/shape/test_moves.py tries every pair"""
    define(db)
    run_id = run_of(db, 1)
    for state in ("consolidating", "consolidation_triggered", "completed"):
        with pytest.raises(psycopg.Error) as caught:
            db.execute("update holdfast.runs set state = %s, finished_at = null where id = %s", [state, run_id])
        assert caught.value.sqlstate == "RN001"


def test_raw_records_are_cut_into_batches_of_2000(db: DB) -> None:
    """P-23, P-28, P-30: 4 500 records are 2 000, 2 000 and 500"""
    define(db)
    run_of(db, 1)
    (step,) = claim(db, "page")
    with db.transaction():
        put(db, step, [f"k{n:05}" for n in range(4500)])
        settle(db, step, Done({"records": 4500}))
    (last,) = claim(db, "consolidate")
    with db.transaction():
        db.execute("select ingest.begin_consolidation(%s, %s)", [last.step_id, last.lease_id])
        settle(db, last, Continue({"batches": 3}, None))
    sizes = db.execute(
        "select (input #>> '{batch,rows}')::int from holdfast.steps where kind = 'ingest:nivoda:batch' order by id"
    ).fetchall()
    assert sizes == [(2000,), (2000,), (500,)]
    (batch,) = claim(db, "batch")
    rows = db.execute("select count(*) from ingest.batch_rows(%s, %s)", [batch.step_id, batch.lease_id]).fetchone()
    assert rows == (2000,)


@pytest.mark.one_server
def test_several_consolidators_write_each_record_once_in_arrays_of_100(hf: Holdfast, db: DB) -> None:
    """P-26, P-31 to P-34: five batches at once by a limit"""
    db.execute(TABLE)
    db.execute(WRITES)
    rows = [order(n) for n in range(1050)]
    run = feed_of(hf, Shop(rows, page_size=500), batch=200).start()
    with ThreadPoolExecutor(3) as workers:
        list(workers.map(lambda _: drain(hf, concurrency=3), range(3)))
    drain(hf)

    run.result(timeout=10)
    assert table(db) == names(rows)
    sizes = [size for (size,) in db.execute("select rows from public.writes").fetchall()]
    assert sum(sizes) == 1050
    assert sorted(sizes) == [50, *[100] * 10]
    limits = db.execute("select concurrency from holdfast.limits where name = 'consolidate:orders'").fetchall()
    assert limits == [(5,)]


@pytest.mark.one_server
def test_five_batches_are_written_at_once_and_not_more(hf: Holdfast, db: DB) -> None:
    """P-32, P-124: however many handlers a worker may run"""
    db.execute(TABLE)
    inside: list[str] = []
    most: list[int] = []
    together = Barrier(5)

    def to_order(record: dict[str, Any]) -> Order:
        if int(record["id"][1:]) % 10 == 0:  # the first record of its batch
            inside.append(record["id"])
            together.wait(60)  # raises unless five arrive
            most.append(len(inside))
            together.wait(60)
            inside.remove(record["id"])
        return Order(**record)

    run = feed_of(hf, Shop([order(n) for n in range(100)], page_size=100), map=to_order, batch=10).start()
    drain(hf, concurrency=12)

    assert run.result(timeout=5).records == 100
    assert most == [5] * 10


@pytest.mark.one_server
def test_deleted_and_quarantined_records_are_kept_for_30_days(hf: Holdfast, db: DB, clock: Clock) -> None:
    db.execute(TABLE)
    rows = [order(n) for n in range(4)]
    feed = feed_of(hf, Shop(rows), overlap="2d", max_rejects=1)
    feed.start()
    drain(hf)
    rows[0]["gone"] = True
    rows.append({"name": "no key", "at": rows[1]["at"]})
    feed.start()
    drain(hf)
    kept = "select count(*) from ingest.raw_orders union all select count(*) from ingest.quarantine"
    clock.advance(timedelta(days=29))
    assert db.execute("select ingest.age_rows(100)").fetchone() == (0,)
    clock.advance(timedelta(days=2))
    assert db.execute("select ingest.age_rows(100)").fetchone() == (2,)
    assert db.execute(kept).fetchall() == [(3,), (0,)]

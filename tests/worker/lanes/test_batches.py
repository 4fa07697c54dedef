"""Calls that serve many steps: an outcome for each, leases and cancels of single steps, transactions, waits, poison."""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest
from typing_extensions import TypedDict

from holdfast import Batch, Continue, Fail, Holdfast, Retry, RetryPolicy, Snooze
from holdfast.errors import BadInput, LeaseLost
from holdfast.testing import drain, events
from holdfast.worker.attempt import Attempt
from kernel.limits import limit
from kernel.steps import DB, start, step_row, value
from worker.lanes import batch_handlers
from worker.running import burst, error_of, seconds, until, until_event, working

pytestmark = pytest.mark.one_server
BEGAN = "select count(*) from holdfast.notes where message = 'began'"
TWICE = RetryPolicy(limit=2, base=seconds(0))


class Job(TypedDict):
    n: int


def jobs(number: int) -> list[Job]:
    return [{"n": n} for n in range(number)]


def states(db: DB) -> list[str]:
    return [state for (state,) in db.execute("select state from holdfast.steps order by id").fetchall()]


def test_each_step_gets_its_own_outcome(hf: Holdfast, db: DB) -> None:
    """R11: each outcome is recorded once and for its own step."""

    @hf.task(batch=10)
    def work(jobs: list[Job]) -> list[Any]:
        outcomes = {0: 0, 1: Retry("busy"), 2: Fail("no"), 3: Snooze(60), 4: object()}
        return [outcomes[job["n"]] for job in jobs]

    handles = [work.start(job) for job in jobs(5)]
    burst(hf)

    assert handles[0].result() == 0
    assert [events(db, step=handle.id)[1] for handle in handles] == [
        "succeeded", "retried", "failed", "snoozed", "failed",
    ]  # fmt: skip
    assert error_of(db, handles[2].id)["message"] == "no"
    assert error_of(db, handles[4].id)["type"] == "ResultRefused"


@pytest.mark.parametrize("returned", [[1], [1, 2, 3, 4], None, (1, 2, 3), Continue("page")], ids=repr)
def test_a_list_of_another_length_or_no_list_fails_each_step(hf: Holdfast, db: DB, returned: Any) -> None:
    @hf.task(batch=10)
    def work(batch: Batch, jobs: list[Job]) -> list[Any]:
        with batch.transaction() as tx:
            tx.execute("create table public.written ()")
        if isinstance(returned, Continue):
            raise returned
        return returned  # type: ignore[no-any-return]

    work.start_many(jobs(3))
    burst(hf)

    errors = [error["type"] for (error,) in db.execute("select error from holdfast.steps").fetchall()]
    assert errors == ["OutcomeRefused"] * 3
    assert db.execute("select to_regclass('public.written')").fetchone() == (None,)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("error", [ValueError("odd"), Retry("busy"), Snooze(5)], ids=lambda e: type(e).__name__)
def test_what_it_raises_is_the_outcome_of_every_step(hf: Holdfast, db: DB, error: Exception, is_async: bool) -> None:
    def work(jobs: list[Job]) -> list[Any]:
        raise error

    async def awork(jobs: list[Job]) -> list[Any]:
        raise error

    hf.task(name="work", batch=10, retry=TWICE)(awork if is_async else work).start_many(jobs(3))  # type: ignore[arg-type]
    burst(hf, most_steps=3)

    expected = "snoozed" if isinstance(error, Snooze) else "retried"
    last = db.execute("select last_event from holdfast.steps").fetchall()
    assert Counter(event for (event,) in last) == {expected: 3}


def test_an_item_that_does_not_fit_fails_alone(hf: Holdfast, db: DB) -> None:
    seen: list[int] = []

    @hf.task(batch=10)
    def work(jobs: list[Job]) -> list[int]:
        seen.extend(job["n"] for job in jobs)
        return [job["n"] for job in jobs]

    work.start_many(jobs(2))
    db.execute("select holdfast.start_task('work', '{\"n\": \"many\"}', batch_key => '')")
    burst(hf)

    assert seen == [0, 1]
    assert states(db) == ["done", "done", "error"]


@pytest.mark.parametrize("lane", ["threads", "loop", "processes"])
def test_a_cancelled_step_is_marked_and_the_others_go_on(hf: Holdfast, db: DB, lane: str) -> None:
    function = batch_handlers.awatch if lane == "loop" else batch_handlers.watch
    task = hf.task(name="work", batch=10, cpu=lane == "processes")(function)  # type: ignore[arg-type]
    ids = [task.start({"n": n, "fate": "live"}).id for n in range(3)]
    with working(hf):
        until(lambda: value(db, BEGAN), "the call")
        hf.handle(ids[0]).cancel()
        until(lambda: states(db) == ["cancelled", "done", "done"], "the others")

    assert "succeeded" not in events(db, step=ids[0])
    assert hf.handle(ids[1]).result() == [False, None]
    is_marked, why = hf.handle(ids[2]).result()
    assert is_marked
    assert "cancelled" in why


@pytest.mark.parametrize("lane", ["threads", "loop", "processes"])
def test_a_call_whose_steps_are_all_cancelled_is_interrupted(hf: Holdfast, db: DB, lane: str) -> None:
    """Its slot, the only one, is free again."""
    function = batch_handlers.alinger if lane == "loop" else batch_handlers.linger
    task = hf.task(name="work", batch=10, cpu=lane == "processes")(function)  # type: ignore[arg-type]
    next_one = hf.task(name="next", batch=10, cpu=lane == "processes")(batch_handlers.compute)
    ids = [task.start({"n": n, "fate": "live"}).id for n in range(2)]
    with working(hf, concurrency=1):
        until(lambda: value(db, BEGAN), "the call")
        for step_id in ids:
            hf.handle(step_id).cancel()
        assert next_one.start({"n": 1, "fate": "live"}).result(timeout=30) == [1, 1]

    assert states(db) == ["cancelled", "cancelled", "done"]


def test_what_is_settled_is_freed_without_the_garbage_collector(hf: Holdfast, db: DB) -> None:
    """A run of a million targets must not leave cycles behind, which are collected late"""

    @hf.task(batch=10)
    def work(batch: Batch, jobs: list[Job]) -> list[Any]:
        with batch.transaction():
            return [None] * len(jobs)

    work.start_many(jobs(400))
    gc.collect()
    before = [each for each in gc.get_objects() if type(each) is Attempt]  # of other tests' workers
    gc.disable()
    try:
        burst(hf, concurrency=4)
        left = sum(type(each) is Attempt for each in gc.get_objects()) - len(before)
    finally:
        gc.enable()

    assert states(db) == ["done"] * 400
    assert left <= 4 * 10, "more is left than the last call of each thread, which may still be returning from it"


def test_a_transaction_commits_all_writes_and_outcomes(hf: Holdfast, db: DB) -> None:
    @hf.task(batch=10)
    def work(batch: Batch, jobs: list[Job]) -> list[Any]:
        with batch.transaction() as tx:
            tx.execute("create table public.written as select %s as n", [len(jobs)])
        return [Fail("no") if job["n"] == 1 else job["n"] for job in jobs]

    work.start_many(jobs(3))
    burst(hf)

    assert states(db) == ["done", "error", "done"]
    assert db.execute("select n from public.written").fetchall() == [(3,)]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("of_lost", [1, Fail("no"), Retry("busy")], ids=["done", "fail", "retry"])
def test_a_transaction_with_a_lost_lease_commits_nothing_and_releases_the_others(
    hf: Holdfast, db: DB, dsn: str, is_async: bool, of_lost: Any
) -> None:
    """Whatever the handler returns for the step that is lost."""
    attempts = 0

    def lose(batch: Batch) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            with psycopg.connect(dsn, autocommit=True) as other:
                other.execute("select holdfast.cancel(%s)", [str(batch.steps[1].step_id)])

    def work(batch: Batch, jobs: list[Job]) -> list[Any]:
        with batch.transaction() as tx:
            tx.execute("create table if not exists public.written (n int)")
            tx.cursor().executemany("insert into public.written values (%s)", [[job["n"]] for job in jobs])
            lose(batch)
        return [of_lost if job["n"] == 1 else job["n"] for job in jobs]

    async def awork(batch: Batch, jobs: list[Job]) -> list[Any]:
        async with batch.transaction() as tx:
            await tx.execute("create table if not exists public.written (n int)")
            await tx.cursor().executemany("insert into public.written values (%s)", [[job["n"]] for job in jobs])
            lose(batch)
        return [of_lost if job["n"] == 1 else job["n"] for job in jobs]

    hf.task(name="work", batch=10)(awork if is_async else work).start_many(jobs(3))  # type: ignore[arg-type]
    burst(hf)

    rows = db.execute("select id, state, failures, attempt from holdfast.steps order by id").fetchall()
    assert [(state, failures, attempt) for _, state, failures, attempt in rows] == [
        ("done", 0, 2), ("cancelled", 0, 1), ("done", 0, 2),
    ]  # fmt: skip
    assert "released" in events(db, step=rows[0][0])
    assert db.execute("select n from public.written order by n").fetchall() == [(0,), (2,)]


def test_a_transaction_in_a_process_commits_all_writes_and_outcomes_of_each_call(hf: Holdfast, db: DB) -> None:
    """One process serves one call after the other."""
    task = hf.task(name="work", batch=2, cpu=True)(batch_handlers.compute)
    task.start_many({"n": n, "fate": "fail" if n == 1 else "write"} for n in range(6))
    burst(hf, concurrency=1)

    assert states(db) == ["done", "error", "done", "done", "done", "done"]
    assert db.execute("select n from public.written order by n").fetchall() == [(n,) for n in range(6)]


def test_a_heartbeat_renews_all_and_marks_the_lost(hf: Holdfast, db: DB, dsn: str) -> None:
    told: list[Any] = []

    @hf.task(batch=10)
    def work(batch: Batch, jobs: list[Job]) -> list[int]:
        with psycopg.connect(dsn, autocommit=True) as other:
            for step in batch.steps[2:]:
                other.execute("select holdfast.cancel(%s)", [str(step.step_id)])
            before = leases_until(other)
            batch.heartbeat()
            assert [was < now for was, now in zip(before, leases_until(other), strict=True)] == [True, True]
        told.append([(step.cancelled, step.stop_reason) for step in batch.steps])
        with pytest.raises(LeaseLost):
            batch.steps[2].note("too late")
        return [job["n"] for job in jobs]

    work.start_many(jobs(4))
    burst(hf)

    lost = (True, "its lease is lost")
    assert told == [[(False, None), (False, None), lost, lost]]
    assert states(db) == ["done", "done", "cancelled", "cancelled"]


def leases_until(db: DB) -> list[Any]:
    query = "select lease_until from holdfast.steps where lease_id is not null order by id"
    return [lease_until for (lease_until,) in db.execute(query).fetchall()]


def test_a_continue_in_the_list_fails_its_own_step(hf: Holdfast, db: DB) -> None:
    @hf.task(batch=10)
    def work(jobs: list[Job]) -> list[Any]:
        return [Continue("page") if job["n"] == 1 else job["n"] for job in jobs]

    handles = [work.start(job) for job in jobs(3)]
    burst(hf)

    assert states(db) == ["done", "error", "done"]
    assert error_of(db, handles[1].id)["type"] == "OutcomeRefused"


@pytest.mark.parametrize("lane", ["threads", "loop", "processes"])
def test_a_call_that_raises_counts_once_for_a_breaker(hf: Holdfast, db: DB, lane: str) -> None:
    limit(db, "shop", breaker_after=2, breaker_for=seconds(600), breaker_counts=["ConnectionError"])
    function = batch_handlers.araise_ if lane == "loop" else batch_handlers.raise_
    options: dict[str, Any] = {"retry": RetryPolicy(limit=5, base=seconds(600)), "cpu": lane == "processes"}
    task = hf.task(name="work", batch=3, limits=["shop"], **options)(function)

    def breaker_after_a_call() -> str:
        task.start_many({"n": n, "fate": "live"} for n in range(3))
        burst(hf, most_steps=3)
        assert value(db, "select count(*) from holdfast.steps where last_event <> 'retried'") == 0
        return str(value(db, "select breaker from holdfast.limit_list where name = 'shop'"))

    assert [breaker_after_a_call(), breaker_after_a_call()] == ["closed", "open"]


@pytest.mark.parametrize("is_many", [False, True])
def test_a_key_that_is_too_long_is_refused(hf: Holdfast, db: DB, is_many: bool) -> None:
    """Before anything is started."""

    @hf.task(batch=10, by="fate")
    def work(jobs: list[batch_handlers.Job]) -> list[None]:
        return [None] * len(jobs)

    fits, too_long = ({"n": 1, "fate": "x" * length} for length in (400, 401))
    start_it = partial(work.start_many, [fits, too_long]) if is_many else partial(work.start, too_long)
    with pytest.raises(BadInput) as refused:
        start_it()

    assert refused.value.where == "fate"
    assert "401" in refused.value.what
    assert states(db) == []
    work.start(fits)
    assert value(db, "select length(batch_key) from holdfast.steps") == 400


@pytest.mark.parametrize("uses_cpu", [False, True])
def test_after_a_timeout_the_steps_run_alone(hf: Holdfast, db: DB, uses_cpu: bool) -> None:
    """R24: one bad item does not take the others to the dead letter."""
    if uses_cpu:
        task: Any = hf.task(name="work", batch=10, retry=TWICE, cpu=True)(batch_handlers.compute)
        given = [{"n": n, "fate": "die" if n == 1 else "live"} for n in range(3)]
    else:

        @hf.task(batch=10, retry=TWICE, timeout=1)  # those that end at once must not run out of it
        def work(jobs: list[Job]) -> list[int]:
            while any(job["n"] == 1 for job in jobs):
                time.sleep(0.01)
            return [job["n"] for job in jobs]

        task, given = work, jobs(3)  # type: ignore[assignment]
    task.start_many(given)
    burst(hf)

    assert states(db) == ["done", "error", "done"]
    assert db.execute("select distinct alone from holdfast.steps").fetchall() == [(True,)]


def test_a_process_serves_a_whole_call(hf: Holdfast, db: DB) -> None:
    task = hf.task(name="work", batch=10, cpu=True)(batch_handlers.compute)
    fates = ["live", "fail", "live"]
    handles = [task.start({"n": n, "fate": fate}) for n, fate in enumerate(fates)]
    burst(hf)

    assert [handles[0].result(), handles[2].result()] == [[0, 3], [2, 3]]
    assert states(db) == ["done", "error", "done"]


def test_a_call_waits_for_more_steps_and_no_longer_than_batch_wait(hf: Holdfast, db: DB) -> None:
    sizes: list[int] = []

    @hf.task(batch=3, batch_wait=60, lease=600)
    def full(jobs: list[Job]) -> list[int]:
        sizes.append(len(jobs))
        return [job["n"] for job in jobs]

    @hf.task(batch=100, batch_wait="300ms")
    def late(jobs: list[Job]) -> list[int]:
        sizes.append(-len(jobs))
        return [job["n"] for job in jobs]

    with working(hf, concurrency=1):
        for job in jobs(3):  # one by one: the first two wait for the third
            until_event(db, full.start(job).id, "claimed")
        until(lambda: sizes == [3], "the full call")
        handle = late.start({"n": 1})
        handle.result(timeout=30)

    assert sizes == [3, -1]


def test_tasks_that_were_started_before_the_kind_had_a_batch_run_alone(hf: Holdfast, db: DB) -> None:
    """They have no key, so they share no call: neither with others nor across tenants (R24)."""
    ids = [start(db, "work", {"n": n}, tenant=tenant) for tenant in ("acme", "bolt") for n in (1, 2)]
    served: list[tuple[int, str | None]] = []

    @hf.task(batch=10, by="n", batch_wait=60, lease=600)
    def work(batch: Batch, jobs: list[Job]) -> list[int]:
        served.append((len(jobs), batch.key))
        return [job["n"] for job in jobs]

    with working(hf):
        until(lambda: states(db) == ["done"] * len(ids), "the end, without a wait for more steps")

    assert served == [(1, None)] * 4


def test_a_draining_worker_and_a_burst_do_not_wait(hf: Holdfast, db: DB) -> None:
    @hf.task(batch=10, batch_wait=60, lease=600)
    def work(jobs: list[Job]) -> list[int]:
        return [len(jobs)] * len(jobs)

    handle = work.start({"n": 1})
    with working(hf):
        until_event(db, handle.id, "claimed")
    assert events(db, step=handle.id) == ["claimed", "released"]
    assert step_row(db, handle.id)["failures"] == 0

    assert drain(hf) == 1
    assert handle.result() == 1


def test_concurrency_counts_calls(hf: Holdfast, db: DB) -> None:
    gate = threading.Semaphore(0)
    running: list[int] = []
    most: list[int] = []

    @hf.task(batch=5)
    def work(jobs: list[Job]) -> list[int]:
        running.append(1)
        most.append(len(running))
        gate.acquire(timeout=30)
        running.pop()
        return [len(jobs)] * len(jobs)

    work.start_many(jobs(40))
    with working(hf, concurrency=3) as worker:
        until(lambda: len(running) == 3, "three calls")
        assert worker.claimer.unfinished <= 6
        for _ in range(8):
            gate.release()
        until(lambda: set(states(db)) == {"done"}, "the end")

    assert max(most) == 3
    assert {result for (result,) in db.execute("select result from holdfast.steps").fetchall()} == {5}


def definitions() -> list[tuple[str, dict[str, Any], Callable[..., Any]]]:
    def good(jobs: list[Job]) -> list[int]: ...  # type: ignore[empty-body]
    def with_ctx(ctx: Any, jobs: list[Job]) -> list[int]: ...  # type: ignore[empty-body]
    def no_list(batch: Batch, job: Job) -> list[int]: ...  # type: ignore[empty-body]
    def two(batch: Batch, jobs: list[Job], more: int) -> list[int]: ...  # type: ignore[empty-body]
    def scalars(numbers: list[int]) -> list[int]: ...  # type: ignore[empty-body]
    def nothing(jobs: list[Job]) -> None: ...
    def plain(batch: Batch, jobs: list[Job]) -> list[int]: ...  # type: ignore[empty-body]

    from holdfast import Ctx

    with_ctx.__annotations__["ctx"] = Ctx
    return [
        ("batch", {"batch": 0}, good), ("batch", {"batch": 10_001}, good), ("batch", {"batch": True}, good),
        ("by", {"by": "n"}, good), ("batch_wait", {"batch_wait": 1}, good), ("by", {"batch": 5, "by": "m"}, good),
        ("batch_wait", {"batch": 5, "batch_wait": -1}, good), ("batch_wait", {"batch": 5, "batch_wait": 101}, good),
        ("batch_wait", {"batch": 5, "batch_wait": 5, "lease": 12}, good),
        ("ctx", {"batch": 5}, with_ctx), ("job", {"batch": 5}, no_list), ("more", {"batch": 5}, two),
        ("batch", {"batch": 5}, scalars), ("return", {"batch": 5}, nothing), ("batch", {}, plain),
    ]  # fmt: skip


@pytest.mark.parametrize(("where", "options", "function"), definitions())
def test_a_bad_definition_is_refused(where: str, options: dict[str, Any], function: Callable[..., Any]) -> None:
    from holdfast.errors import BadDefinition

    with pytest.raises(BadDefinition) as refused:
        Holdfast("dbname=nowhere").task(**options)(function)

    assert refused.value.where == where
    assert refused.value.next

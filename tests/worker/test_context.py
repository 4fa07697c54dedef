"""What a handler holds: who it is, how long it has, notes, heartbeats, and its own transaction."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from holdfast import Continue, Ctx, Fail, Holdfast, Retry, Snooze
from holdfast.errors import LeaseLost
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import Clock, events
from kernel.steps import DB, step_row, value
from worker.lanes import cpu
from worker.running import burst, metric, read, seconds, working

pytestmark = pytest.mark.one_server


@pytest.fixture
def effects(db: DB) -> DB:
    db.execute("create table effects (what text)")
    return db


def written(db: DB) -> list[str]:
    return [what for (what,) in db.execute("select what from effects order by what")]


def test_a_handler_knows_its_step(hf: Holdfast, db: DB) -> None:
    """W-37: the attempt counts; the key for outside systems is the same over attempts."""
    seen: list[Any] = []

    @hf.task
    def look(ctx: Ctx) -> None:
        seen.append((ctx.step_id, ctx.run_id, ctx.kind, ctx.attempt, ctx.idempotency_key, ctx.deadline, ctx.cancelled))
        seen.append(ctx.lease_id)
        if ctx.attempt == 1:
            raise Retry(after=0)

    handle = look.start()
    worker = burst(hf)
    key = f"holdfast-step-{handle.id}"

    assert seen[0] == (handle.id, None, "look", 1, key, None, False)
    assert seen[2] == (handle.id, None, "look", 2, key, None, False)
    assert seen[1] != seen[3]
    assert worker.in_flight == 0


def test_a_handler_knows_how_long_it_has(hf: Holdfast) -> None:
    """W-57."""

    @hf.task(timeout=60)
    def look(ctx: Ctx) -> bool:
        left = ctx.time_left()
        return left is not None and seconds(0) < left <= seconds(60) and ctx.deadline is not None

    handle = look.start()
    burst(hf)

    assert handle.result() is True


def test_notes_progress_and_usage_stay_with_the_step(hf: Holdfast, db: DB) -> None:
    """W-54: progress is written at most once a second, and the last always; usage once an attempt."""

    @hf.task
    def work(ctx: Ctx) -> None:
        ctx.note("hello", level="warn", colour="red")
        for done in range(101):
            ctx.progress(done, 100)
        for _ in range(2):
            ctx.usage(tokens=120, cost=0.5)

    handle = work.start()
    burst(hf)
    rows = db.execute("select level, message, payload from holdfast.notes where step_id = %s order by id", [handle.id])
    found = rows.fetchall()

    assert found[0] == ("warn", "hello", {"colour": "red"})
    progress = [payload["done"] for _, message, payload in found if message == "progress"]
    assert (progress[0], progress[-1], len(progress) < 10) == (0, 100, True)
    assert [payload for _, message, payload in found if message == "usage"] == [{"tokens": 120, "cost": 0.5}]


def test_a_heartbeat_lengthens_the_lease(hf: Holdfast, db: DB, clock: Clock) -> None:
    """W-57."""
    now = clock.freeze()
    until: list[Any] = []

    @hf.task(lease=100)
    def work(ctx: Ctx) -> None:
        clock.advance(seconds(50))
        ctx.heartbeat()
        until.append(step_row(db, ctx.step_id)["lease_until"])

    work.start()
    burst(hf)

    assert until == [now + seconds(150)]


def test_a_heartbeat_keeps_to_the_workers_own_lease(hf: Holdfast, db: DB, clock: Clock) -> None:
    """W-46, W-57: where it has one it goes before the kind's, as it does for the claim."""
    now = clock.freeze()
    until: list[Any] = []

    @hf.task(lease=100)
    def work(ctx: Ctx) -> None:
        ctx.heartbeat()
        until.append(step_row(db, ctx.step_id)["lease_until"])

    work.start()
    burst(hf, lease=seconds(40))

    assert until == [now + seconds(40)]


def taken_over(db: DB, clock: Clock, ctx: Ctx) -> None:
    """Let the lease run out, and another worker take the step."""
    clock.advance(seconds(1000))
    with db.transaction():  # so that the worker itself cannot be the one that takes it
        run(db, calls.rescue_steps())
        run(db, calls.claim_steps("another", lease=seconds(3600)))
    assert step_row(db, ctx.step_id)["lease_owner"] == "another"


@pytest.mark.parametrize("word", ["heartbeat", "note", "usage"])
def test_after_a_takeover_each_word_is_refused(hf: Holdfast, db: DB, clock: Clock, word: str) -> None:
    """W-61, C-62: and so is the outcome."""
    raised: list[type[Exception]] = []

    @hf.task
    def work(ctx: Ctx) -> str:
        taken_over(db, clock, ctx)
        try:
            {"heartbeat": ctx.heartbeat, "note": lambda: ctx.note("x"), "usage": lambda: ctx.usage(cost=1)}[word]()
        except LeaseLost:
            raised.append(LeaseLost)
        return "mine"

    handle = work.start()
    worker = burst(hf)

    assert raised == [LeaseLost]
    assert metric(worker, "holdfast_settle_refused_total") == 1
    assert (handle.status().state, handle.status().outcome) == ("running", None)


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize(
    ("ends", "kept"),
    [
        ("return", True), ("continue", True), ("continue inside", True), ("raise", False), ("raise inside", False),
        ("retry", False), ("retry returned", False), ("snooze", False), ("fail", False), ("too large", False),
        ("no JSON", False),
    ],
)  # fmt: skip
def test_effects_and_progress_commit_together_or_not_at_all(  # noqa: C901 - one branch a case
    hf: Holdfast, effects: DB, ends: str, kept: bool, is_async: bool
) -> None:
    """W-60: a result, or the cursor of a page, takes the handler's writes with it; no other outcome does."""

    def end(ctx: Ctx, *, inside: bool) -> Any:
        if ctx.cursor or ctx.attempt > 1 or inside != ends.endswith("inside"):
            return "over"
        outcomes = {"continue": Continue(2), "retry": Retry(after=3600), "snooze": Snooze(3600), "fail": Fail("x")}
        match ends.split():
            case ["retry", "returned"]:
                return outcomes["retry"]
            case ["too", "large"]:
                return "x" * 2_000_000
            case ["no", "JSON"]:
                return object()
            case [word, *_] if word in outcomes:
                raise outcomes[word]
            case ["raise", *_]:
                raise ValueError("no")
        return "over"

    def plain(ctx: Ctx) -> Any:
        if not ctx.cursor:
            with ctx.transaction() as tx:
                tx.execute("insert into effects values ('once')")
                end(ctx, inside=True)
        return end(ctx, inside=False)

    async def waiting(ctx: Ctx) -> Any:
        if not ctx.cursor:
            async with ctx.transaction() as tx:
                await tx.execute("insert into effects values ('once')")
                end(ctx, inside=True)
        return end(ctx, inside=False)

    hf.task(name="work")(waiting if is_async else plain).start()
    burst(hf)

    assert written(effects) == (["once"] if kept else [])


def test_a_transaction_whose_lease_was_lost_leaves_nothing(hf: Holdfast, effects: DB, clock: Clock) -> None:
    """W-61, C-62."""

    @hf.task
    def work(ctx: Ctx) -> str:
        with ctx.transaction() as tx:
            tx.execute("insert into effects values ('twice')")
        taken_over(effects, clock, ctx)
        return "mine"

    work.start()
    worker = burst(hf)

    assert written(effects) == []
    assert metric(worker, "holdfast_settle_refused_total") == 1


def test_a_transaction_works_in_a_process_too(hf: Holdfast, effects: DB) -> None:
    """W-60."""
    handle = hf.task(cpu=True)(cpu.effect).start()
    worker = burst(hf)

    assert (handle.result(), written(effects)) == ("kept", ["cpu"])
    assert metric(worker, "holdfast_settled_total", kind="effect", event="succeeded") == 1


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_a_step_that_is_cancelled_by_hand_stops_its_handler(hf: Holdfast, db: DB, is_async: bool) -> None:
    """W-32, W-61: it is told within seconds, and stopped though it does not look."""
    began, ended = threading.Event(), threading.Event()
    told: list[Any] = []

    def plain(ctx: Ctx) -> None:
        began.set()
        try:
            while True:
                pass
        finally:
            told.append((ctx.cancelled, ctx.stop_reason))
            ended.set()

    async def waiting(ctx: Ctx) -> None:
        import asyncio

        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.append((ctx.cancelled, ctx.stop_reason))
            ended.set()

    handle = hf.task(name="work")(waiting if is_async else plain).start()
    with working(hf):
        assert read(began)
        handle.cancel("changed my mind")
        assert read(ended)

    assert [(is_lost, "cancelled" in why) for is_lost, why in told] == [(True, True)]
    assert events(db, step=handle.id) == ["claimed", "cancelled"]
    assert value(db, "select count(*) from holdfast.steps where state = 'cancelled'") == 1

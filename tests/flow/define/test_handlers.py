"""A flow's step is a step as any other: in threads, on the loop, in processes, with each outcome and its own writes."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection

from flow import cpu_flow
from holdfast import Continue, Ctx, Fail, Holdfast, Retry, RunFailed, Snooze
from holdfast.testing import Clock, drain, events
from kernel.steps import value

pytestmark = pytest.mark.one_server

DB = Connection[Any]


@pytest.fixture
def effects(db: DB) -> DB:
    db.execute("create table effects (what text not null)")
    return db


def written(db: DB) -> list[str]:
    return [row[0] for row in db.execute("select what from effects order by what").fetchall()]


def step_ids(db: DB) -> dict[str, int]:
    return dict(db.execute("select name, step_id from holdfast.run_steps").fetchall())


def test_steps_run_in_processes_of_their_own(hf: Holdfast, effects: DB) -> None:
    """T-48, T-53: with what their parents gave, their config, their items and their own writes."""
    run = cpu_flow.defined(hf).start(number=3)

    drain(hf)

    result = run.result(1)
    assert (result["square"]["is"], result["items"]) == (9, [9, 10])
    assert [each[:2] for each in result["each_apart"]] == [[9, 3], [10, 3]]
    assert os.getpid() not in {result["square"]["pid"], *(each[2] for each in result["each_apart"])}
    assert written(effects) == ["10", "9"]


def test_a_condition_holds_in_a_process_too(dsn: str) -> None:
    """T-48: it is looked at where the step runs."""
    app = cpu_flow.apart
    app.use(dsn)
    try:
        even, odd = cpu_flow.conditional.start(number=4), cpu_flow.conditional.start(number=5)
        drain(app)

        half, pid = even.result_of("halve")
        assert (half, odd.result_of("halve")) == (2, None)
        assert pid != os.getpid()
    finally:
        app.close()


def test_a_step_in_a_process_that_takes_too_long_is_ended(hf: Holdfast, db: DB) -> None:
    """T-50, T-51."""
    flow = hf.flow("burn")
    flow.step(name="forever", cpu=True, timeout=0.5, retry=1)(cpu_flow.forever)

    run = flow.start()
    drain(hf)

    with pytest.raises(RunFailed, match="forever: TimeoutError"):
        run.result(1)


def test_async_steps_run_beside_each_other_on_one_loop(hf: Holdfast) -> None:
    """T-55: each waits until all three are there."""
    flow = hf.flow("meet")
    threads: set[int] = set()
    there: list[asyncio.Event] = []

    async def meet(ctx: Ctx) -> None:
        threads.add(threading.get_ident())
        mine = asyncio.Event()
        there.append(mine)
        if len(there) == 3:
            for each in there:
                each.set()
        await asyncio.wait_for(mine.wait(), 20)

    for name in ("a", "b", "c"):
        flow.step(name=name)(meet)
    run = flow.start()
    drain(hf)

    assert run.status().state == "complete"
    assert len(threads) == 1


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_what_a_step_writes_is_there_with_its_completion_or_not_at_all(
    hf: Holdfast, effects: DB, is_async: bool
) -> None:
    """T-49, T-132: and with a second attempt once."""
    flow = hf.flow("write")

    def failing(ctx: Ctx) -> str:
        with ctx.transaction() as tx:
            tx.execute("insert into effects values ('plain')")
        if ctx.attempt == 1:
            raise Retry("again", after=0)
        return "kept"

    async def afailing(ctx: Ctx) -> str:
        async with ctx.transaction() as tx:
            await tx.execute("insert into effects values ('async')")
        if ctx.attempt == 1:
            raise Retry("again", after=0)
        return "kept"

    flow.step(name="write")(afailing if is_async else failing)
    flow.step(name="read", after="write")(lambda write: write)
    run = flow.start()
    drain(hf)
    drain(hf)

    assert run.result(1) == {"write": "kept", "read": "kept"}
    assert written(effects) == ["async" if is_async else "plain"]


def test_a_snoozed_step_comes_back_later_and_is_charged_nothing(hf: Holdfast, db: DB) -> None:
    """T-77: and those that wait for it wait on."""
    flow = hf.flow("nap")

    @flow.step(retry=1)
    def nap(ctx: Ctx) -> int:
        if ctx.attempt < 3:
            raise Snooze(60)
        return ctx.attempt

    flow.step(name="then", after=nap)(lambda nap: nap + 1)
    run = flow.start()
    for _ in range(3):
        drain(hf)
        Clock(db).advance(timedelta(seconds=61))

    assert run.result(1) == {"nap": 3, "then": 4}
    assert events(db, step=step_ids(db)["nap"]).count("snoozed") == 2


def test_a_step_may_continue_page_by_page_with_its_writes(hf: Holdfast, effects: DB) -> None:
    """T-132: a condition is asked before the first page, and what has begun is carried through."""
    flow = hf.flow("pages")
    asked: list[int] = []

    def is_wanted(order_id: int) -> bool:
        asked.append(order_id)
        return len(asked) == 1

    @flow.step(when=is_wanted)
    def fetch(ctx: Ctx, order_id: int) -> str:
        page = (ctx.cursor or {"page": 0})["page"]
        with ctx.transaction() as tx:
            tx.execute("insert into effects values (%s)", [f"page {page}"])
        if page < 2:
            raise Continue({"page": page + 1})
        return f"{order_id}: {page + 1} pages"

    run = flow.start(order_id=7)
    drain(hf)

    assert run.result_of(fetch) == "7: 3 pages"
    assert written(effects) == ["page 0", "page 1", "page 2"]
    assert asked == [7]


def test_the_condition_of_a_map_is_asked_once(hf: Holdfast) -> None:
    """What its items gave is not lost when it would say no at the end."""
    flow = hf.flow("map")
    answers = iter([True])

    @flow.step
    def items() -> list[int]:
        return [1, 2]

    @flow.step(each=items, when=lambda: next(answers, False))
    def double(item: int) -> int:
        return 2 * item

    run = flow.start()
    drain(hf)

    assert run.result_of(double) == [2, 4]


def test_the_function_of_a_sub_flow_cannot_continue(hf: Holdfast) -> None:
    """Its cursor says that the inner steps are planned; taken for that, they would never be."""
    inner = hf.flow("inner")
    inner.step(name="work")(lambda: 1)
    flow = hf.flow("outer")

    @flow.subflow(inner)
    def begin() -> dict[str, Any]:
        raise Continue({"page": 2})

    @flow.subflow(inner)
    async def abegin() -> dict[str, Any]:
        raise Continue({"page": 2})

    run = flow.start()
    drain(hf)

    assert [step.error["type"] for step in run.steps()] == ["OutcomeRefused", "OutcomeRefused"]
    with pytest.raises(RunFailed, match="cannot continue"):
        run.result(1)


def test_a_sub_flow_opens_when_its_function_has_snoozed_or_retried(hf: Holdfast, db: DB) -> None:
    """T-73: its steps are planned once."""
    inner = hf.flow("inner")
    inner.step(name="work")(lambda number: number)
    flow = hf.flow("outer")

    @flow.subflow(inner)
    def begin(ctx: Ctx) -> dict[str, int]:
        if ctx.attempt == 1:
            raise Snooze(0)
        if ctx.attempt == 2:
            raise Retry("again", after=0)
        return {"number": ctx.attempt}

    run = flow.start()
    for _ in range(3):
        drain(hf)

    assert run.result_of("begin") == {"work": 3}
    assert value(db, "select count(*) from holdfast.steps") == 2


def test_a_context_that_the_inner_flow_refuses_fails_the_step_that_made_it(hf: Holdfast) -> None:
    """T-51: named as the inner flow's own start would."""
    inner = hf.flow("inner")
    inner.step(name="work")(lambda number: number)
    flow = hf.flow("outer")
    flow.subflow(inner, name="begin", retry=1)(lambda: {"nmber": 1})

    run = flow.start()
    drain(hf)

    with pytest.raises(RunFailed, match=r"begin: InputRefused.*inner.*number: "):
        run.result(1)


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_a_step_that_takes_too_long_is_stopped_and_tried_again(hf: Holdfast, db: DB, is_async: bool) -> None:
    """T-50, T-73: its timeout is a failure as any other."""
    flow = hf.flow("slow")

    def slow(ctx: Ctx) -> int:
        while ctx.attempt == 1:
            time.sleep(0.01)
        return ctx.attempt

    async def aslow(ctx: Ctx) -> int:
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return ctx.attempt

    flow.step(name="slow", timeout=1, retry=2)(aslow if is_async else slow)
    run = flow.start()
    drain(hf)
    Clock(db).advance(timedelta(minutes=1))
    drain(hf)

    assert run.result(1) == {"slow": 2}
    assert "retried" in events(db, step=step_ids(db)["slow"])


def test_a_step_that_gives_up_ends_its_task(hf: Holdfast) -> None:
    """T-11, T-59: with the other branch carried through."""
    flow = hf.flow("give_up")

    @flow.step
    def gives_up() -> None:
        raise Fail("no more")

    flow.step(name="other")(lambda: 1)
    run = flow.start()
    drain(hf)

    with pytest.raises(RunFailed, match="gives_up: Fail"):
        run.result(1)
    assert run.result_of("other") == 1

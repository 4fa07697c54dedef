"""Limits as Python declares them, and what a worker and a handler make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Lock
from typing import Any

import pytest

from holdfast import Ctx, Holdfast
from holdfast.errors import BadDefinition, BadInput, RateLimited
from holdfast.kernel import calls, limit_calls
from holdfast.kernel.db import run
from holdfast.models import Snooze
from holdfast.testing import Clock
from kernel.steps import DB, column, value
from worker.running import burst, seconds, until, working

pytestmark = pytest.mark.one_server


def test_a_worker_defines_limits_and_tasks_name_them_by_their_arguments(dsn: str, db: DB, clock: Clock) -> None:
    clock.freeze()
    hf = Holdfast(dsn)
    hf.limit("shop:*", concurrency=2, rate=40, per=1, burst=80, breaker_after=6, breaker_for="1m")

    @hf.task(limits=["shop:{shop}", "openai"], weight="{tokens}", call_weight=5)
    def describe(shop: str, tokens: int) -> str:
        return shop

    burst(hf)
    first = describe.start(shop="acme", tokens=7)
    second = describe.options(limits=["other"], weight=2).start(shop="acme", tokens=7)

    assert (column(db, first.id, "limits"), column(db, first.id, "weight")) == (["shop:acme", "openai"], 7)
    assert (column(db, second.id, "limits"), column(db, second.id, "weight")) == (["other"], 2)
    assert describe.start_many([{"shop": "b", "tokens": 1}]) == 1
    row = db.execute(
        "select concurrency, rate, per, burst, breaker_after, breaker_for from holdfast.limits where name = 'shop:*'"
    ).fetchone()
    assert row == (2, 40, seconds(1), 80, 6, seconds(60))
    burst(hf)
    assert value(db, "select count(*) from holdfast.steps where state = 'done'") == 3
    assert value(db, "select tokens from holdfast.limit_list where name = 'shop:acme'") == 80 - 7 - 5


def test_a_handler_charges_extra_requests_and_learns_when_to_come_back(dsn: str, db: DB, clock: Clock) -> None:
    clock.freeze()
    hf = Holdfast(dsn)
    hf.limit("api", rate=1, per=10, burst=3)
    answers: list[timedelta | None] = []

    @hf.task(limits=["api"])
    def poll(ctx: Ctx) -> None:
        answers.extend([ctx.charge("api", 2), ctx.charge("api", wait=False)])

    poll.start()
    burst(hf)

    assert answers == [None, seconds(10)]


@pytest.mark.parametrize("way", ["charge", "acharge"])
def test_a_charge_waits_until_the_tokens_are_there(dsn: str, db: DB, clock: Clock, way: str) -> None:
    """The step took the only token, and no other comes until the clock moves."""
    clock.freeze()
    hf = Holdfast(dsn)
    hf.limit("api", rate=1, per=0.2, burst=1)
    begun = Event()

    @hf.task(limits=["api"], name="charge")
    def charge(ctx: Ctx) -> object:
        begun.set()
        return ctx.charge("api")

    @hf.task(limits=["api"], name="acharge")
    async def acharge(ctx: Ctx) -> object:
        begun.set()
        return await ctx.acharge("api")

    with working(hf):
        (step_id,) = run(db, calls.start_task(way, limits=["api"]))
        until(begun.is_set)
        clock.advance(seconds(0.2))
        until(lambda: column(db, step_id, "state") == "done")

    assert value(db, "select tokens from holdfast.limit_list where name = 'api'") == 0


def test_a_charge_that_makes_no_sense_is_refused_and_takes_nothing(dsn: str, db: DB, clock: Clock) -> None:
    clock.freeze()
    hf = Holdfast(dsn)
    hf.limit("api", rate=1, per=10, burst=3)
    wrong: list[tuple[Any, Any]] = [
        ("api", -1),
        ("api", 0),
        ("api", True),
        ("api", "2"),
        ("api", float("nan")),
        ("", 1),
    ]
    refused: list[BadInput] = []

    @hf.task(limits=["api"])
    def poll(ctx: Ctx) -> None:
        for name, weight in [*wrong, ("api:*", 1)]:
            with pytest.raises(BadInput) as refusal:
                ctx.charge(name, weight)
            refused.append(refusal.value)

    poll.start()
    burst(hf)

    assert len(refused) == len(wrong) + 1
    assert all(error.next for error in refused)
    assert value(db, "select tokens from holdfast.limit_list where name = 'api'") == 2


def test_rate_limited_closes_the_limit_for_all_workers(dsn: str, db: DB, clock: Clock) -> None:
    clock.freeze()
    hf = Holdfast(dsn)
    hf.limit("shop:*", rate=100, per=1)

    @hf.task(limits=["shop:{shop}"])
    def push(shop: str) -> None:
        raise RateLimited("429", retry_after=7)

    push.start(shop="acme")
    burst(hf)

    until = value(db, "select paused_until - holdfast.clock() from holdfast.limit_list where name = 'shop:acme'")
    assert until == seconds(7)


def test_three_shops_with_two_slots_each_are_served_while_one_pushes_back(dsn: str, db: DB) -> None:
    """R16, R28: no slot is exceeded, the shop that answered 429 comes back, and the others do not wait for it."""
    hf = Holdfast(dsn)
    hf.limit("shop:*", concurrency=2, rate=1000, per=1)
    lock, most, running, refused = Lock(), Counter[str](), Counter[str](), list[str]()

    @hf.task(limits=["shop:{shop}"], retry=5)
    def push(shop: str, item: int) -> str:
        with lock:
            running[shop] += 1
            most[shop] = max(most[shop], running[shop])
            is_refused = shop == "b" and not refused
            if is_refused:
                refused.append(shop)
        try:
            if is_refused:
                raise RateLimited("429", retry_after=0.5)
            Event().wait(0.01)
            return shop
        finally:
            with lock:
                running[shop] -= 1

    with working(hf, concurrency=8):
        handles = [push.start(shop=shop, item=item) for item in range(8) for shop in ("a", "b", "c")]
        results = Counter(handle.result(timeout=60) for handle in handles)

    assert results == {"a": 8, "b": 8, "c": 8}
    assert max(most.values()) <= 2
    assert value(db, "select count(*) from holdfast.limit_changes where event = 'paused' and name = 'shop:b'") == 1
    assert value(db, "select coalesce(sum(held) + sum(parked), 0) from holdfast.limit_states") == 0


def test_a_snooze_pauses_the_limit_that_it_names(dsn: str, db: DB, clock: Clock) -> None:
    clock.freeze()
    hf = Holdfast(dsn)

    @hf.task
    def poll() -> None:
        raise Snooze(60, pause="api")

    poll.start()
    burst(hf)

    span = value(db, "select paused_until - holdfast.clock() from holdfast.limit_list where name = 'api'")
    assert span == seconds(60)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"limits": ["a", "b", "c", "d"]}, "limits"),
        ({"limits": "a"}, "limits"),
        ({"limits": ["queue:a"]}, "limits"),
        ({"limits": ["shop:*"]}, "limits"),
        ({"weight": -1}, "weight"),
        ({"weight": float("nan")}, "weight"),
        ({"weight": 0}, "weight"),
        ({"weight": "many"}, "weight"),
        ({"call_weight": -1}, "call_weight"),
    ],
)
def test_a_task_with_limits_that_make_no_sense_is_refused(options: dict[str, Any], where: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        Holdfast("").task(**options)(lambda: None)

    assert refused.value.where == where


@pytest.mark.parametrize(
    ("act", "where"),
    [
        (lambda hf: hf.limit("", concurrency=1), "name"),
        (lambda hf: hf.limit("a", concurrency=-1), "concurrency"),
        (lambda hf: hf.limit("a", rate=1), "per"),
        (lambda hf: hf.limit("a", rate=1, per="soon"), "per"),
        (lambda hf: hf.limit("a", breaker_after=1), "breaker_after"),
        (lambda hf: hf.limit("a*", concurrency=1), "name"),
        (lambda hf: hf.limit(":*", concurrency=1), "name"),
        (lambda hf: hf.limit("a", concurrency=1.5), "concurrency"),
        (lambda hf: hf.limit("a", concurrency=True), "concurrency"),
        (lambda hf: hf.limit("a", rate=0, per=1), "rate"),
        (lambda hf: hf.limit("a", rate=float("nan"), per=1), "rate"),
        (lambda hf: hf.limit("a", rate=1, per=0), "per"),
        (lambda hf: hf.limit("a", rate=1, per=1, burst=0), "burst"),
        (lambda hf: hf.limit("a", burst=1), "burst"),
        (lambda hf: hf.limit("a", breaker_after=0, breaker_for=1), "breaker_after"),
        (lambda hf: hf.limit("a", breaker_after=1, breaker_for=0), "breaker_for"),
        (lambda hf: hf.limit("a", breaker_counts=["X"]), "breaker_counts"),
        (lambda hf: hf.limit("a", breaker_after=1, breaker_for=1, breaker_counts="RateLimited"), "breaker_counts"),
        (lambda hf: hf.limit("a", tenant=""), "tenant"),
        (lambda hf: hf.limit("a", concurency=1), "concurency"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(act: Callable[[Holdfast], None], where: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        act(Holdfast(""))

    assert refused.value.where == where
    assert refused.value.next


def test_options_with_limits_that_make_no_sense_are_refused() -> None:
    task = Holdfast("").task(print_nothing)

    for options, where in (({"limits": ["a"] * 2}, "limits"), ({"weight": -1}, "weight")):
        with pytest.raises(BadInput) as refused:
            task.options(**options)  # type: ignore[arg-type]
        assert refused.value.where == where


def print_nothing() -> None:
    pass


def concurrency(db: DB) -> Any:
    return value(db, "select sum(concurrency) from holdfast.limits where name = 'api'")


def app(dsn: str, **rule: Any) -> Holdfast:
    hf = Holdfast(dsn)
    hf.limit("api", **rule)
    hf.task(print_nothing)
    return hf


def test_what_an_operator_sets_lasts_until_the_code_says_something_new(dsn: str, db: DB) -> None:
    """A worker defines its limits whenever it connects, which must not undo an operator's change in an emergency."""
    old, new = app(dsn, concurrency=5), app(dsn, concurrency=6)
    burst(old)
    burst(new)
    run(db, limit_calls.define_limit("api", concurrency=1))

    burst(new)  # a restart, or a connection that was lost
    burst(old)  # an older worker in a rolling restart
    assert concurrency(db) == 1

    burst(app(dsn, concurrency=7))
    assert concurrency(db) == 7
    burst(app(dsn, concurrency=7))
    changes = db.execute("select actor_kind, payload ->> 'concurrency' from holdfast.limit_changes order by id")
    assert changes.fetchall() == [("worker", "5"), ("worker", "6"), ("user", "1"), ("worker", "7")]


def test_a_worker_whose_connections_were_cut_undoes_nothing(dsn: str, db: DB) -> None:
    cut = """
    select pg_terminate_backend(a.pid) from pg_stat_activity a
     where a.datname = current_database() and a.pid <> pg_backend_pid()
    """
    with working(app(dsn, concurrency=5)) as worker:
        until(lambda: worker.is_ready)
        run(db, limit_calls.define_limit("api", concurrency=1))
        db.execute(cut)
        (step_id,) = run(db, calls.start_task("print_nothing"))
        until(lambda: column(db, step_id, "state") == "done")  # it was claimed by a new connection

    assert concurrency(db) == 1


def test_a_limit_that_an_operator_removed_stays_removed(dsn: str, db: DB) -> None:
    burst(app(dsn, concurrency=5))
    run(db, limit_calls.forget_limit("api"))

    burst(app(dsn, concurrency=5))
    assert concurrency(db) is None

    burst(app(dsn, concurrency=6))
    assert concurrency(db) == 6


def test_a_pause_outlasts_the_workers_definitions(dsn: str, db: DB) -> None:
    burst(app(dsn, concurrency=5))
    run(db, limit_calls.pause_limit("api", reason="a sale"))

    burst(app(dsn, concurrency=5))
    burst(app(dsn, concurrency=6))

    assert value(db, "select reason from holdfast.limit_list where name = 'api'") == "a sale"


def test_the_code_takes_over_a_rule_that_an_operator_had_set_before(dsn: str, db: DB) -> None:
    run(db, limit_calls.define_limit("api", concurrency=5))
    burst(app(dsn, concurrency=5))  # the same rule, from now on the code's too
    run(db, limit_calls.define_limit("api", concurrency=1))

    burst(app(dsn, concurrency=5))

    assert concurrency(db) == 1

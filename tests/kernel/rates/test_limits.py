"""Limits: slots and buckets, what a step holds and charges, and how both come back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import errors
from holdfast.kernel import calls, limit_calls
from holdfast.kernel.db import run
from holdfast.models import Continue, Fail, Release, Retry
from holdfast.testing import Clock
from kernel.limits import LIMITED, held, ids, limit, settled
from kernel.steps import (
    DB,
    add_machine,
    claim,
    claim_one,
    column,
    finish,
    insert_step,
    node,
    rescue,
    seconds,
    settle,
    start,
    start_flow,
    value,
)

pytestmark = pytest.mark.one_server


@pytest.fixture(autouse=True)
def frozen(clock: Clock) -> None:
    clock.freeze()


def test_a_limit_of_two_is_held_by_two_and_the_third_comes_after_one_of_them(db: DB) -> None:
    limit(db, "shop:acme", concurrency=2)
    tasks = [start(db, limits=["shop:acme"]) for _ in range(5)]

    first = claim(db, batch=5)

    assert ids(first) == tasks[:2]
    assert claim(db, "b", batch=5) == []
    assert held(db, "shop:acme") == (2, 3)
    finish(db, first[:1])
    assert ids(claim(db, "b", batch=5)) == tasks[2:3]


def test_what_a_limit_refuses_delays_nothing_behind_it(db: DB) -> None:
    limit(db, "shop:*", concurrency=1)
    for _ in range(30):
        start(db, limits=["shop:acme"])
    free = [start(db), start(db, limits=["shop:other"]), start(db)]

    assert ids(claim(db, batch=4))[1:] == free


def test_a_family_counts_each_value_and_an_exact_name_goes_before_it(db: DB) -> None:
    limit(db, "shop:*", concurrency=1)
    limit(db, "shop:big", concurrency=2)
    for shop in ("big", "big", "big", "a", "a", "b"):
        start(db, limits=[f"shop:{shop}"])

    claim(db, batch=10)

    assert [held(db, f"shop:{shop}") for shop in ("big", "a", "b")] == [(2, 1), (1, 1), (1, 0)]
    assert held(db, "shop:*") == (2, 1)


@pytest.mark.parametrize(
    ("name", "options"),
    [("queue:mail", {"queue": "mail"}), ("kind:mail", {}), ("tenant:t1", {"tenant": "t1"}), ("tenant:*", {})],
)
def test_queue_kind_and_tenant_are_limited_without_being_named(db: DB, name: str, options: dict[str, Any]) -> None:
    limit(db, name, concurrency=1)
    for _ in range(3):
        start(db, "mail", **options)
    other = start(db, "other", queue=options.get("queue"), tenant="t2") if name != "queue:mail" else start(db, "other")

    assert len(claim(db, queue=options.get("queue", "default"), batch=9)) == (1 if name == "queue:mail" else 2)
    if name == "queue:mail":
        assert ids(claim(db, batch=9)) == [other]


def test_all_limits_of_a_step_must_admit_it_and_none_is_left_idle(db: DB) -> None:
    limit(db, "a", concurrency=1)
    limit(db, "b", concurrency=1)
    both = start(db, limits=["a", "b"])
    only_b = start(db, limits=["b"])
    again = start(db, limits=["a", "b"])
    first = claim(db, batch=9)
    assert ids(first) == [both]

    finish(db, first)

    assert ids(claim(db, batch=9)) == [only_b]  # parked on b, it goes before the later step
    limit(db, "b", concurrency=2)
    assert ids(claim(db, batch=9)) == [again]


def test_a_rule_of_one_tenant_and_one_for_all_both_count(db: DB) -> None:
    limit(db, "api", concurrency=3)
    limit(db, "api", concurrency=1, tenant="t1")
    for tenant in ("t1", "t1", "t2", "t2", "t2"):
        start(db, limits=["api"], tenant=tenant)

    tenants = [column(db, step.step_id, "tenant") for step in claim(db, batch=9)]

    assert tenants == ["t1", "t2", "t2"]
    assert (held(db, "api", "t1"), held(db, "api")) == ((1, 1), (3, 1))


def test_a_bucket_gives_its_burst_and_then_its_rate(db: DB, clock: Clock) -> None:
    limit(db, "api", rate=2, per=seconds(1), burst=3)
    for _ in range(10):
        start(db, limits=["api"])
    assert len(claim(db, batch=10)) == 3
    clock.advance(seconds(0.499999))
    assert claim(db, batch=10) == []
    clock.advance(seconds(0.000001))
    assert len(claim(db, batch=10)) == 1
    clock.advance(seconds(100))

    assert len(claim(db, batch=10)) == 3


def test_a_heavy_step_is_not_overtaken_by_a_light_one_of_its_limit(db: DB, clock: Clock) -> None:
    limit(db, "api", rate=1, per=seconds(1), burst=10)
    start(db, limits=["api"], weight=8)
    heavy, light = start(db, limits=["api"], weight=5), start(db, limits=["api"], weight=1)
    assert len(claim(db, batch=9)) == 1

    assert claim(db, batch=9) == []
    clock.advance(seconds(3))

    assert ids(claim(db, batch=9)) == [heavy]
    clock.advance(seconds(1))
    assert ids(claim(db, batch=9)) == [light]


def test_a_sleeper_is_told_when_a_limit_opens_by_time(db: DB, clock: Clock) -> None:
    limit(db, "api", rate=1, per=seconds(10), burst=1)
    start(db, limits=["api"])
    start(db, limits=["api"])
    claim(db, batch=5)

    assert run(db, calls.mark_asleep("a"))[0] == seconds(10)

    clock.advance(seconds(10))
    assert len(claim(db, batch=5)) == 1


def test_kinds_fill_their_templates_from_the_input(db: DB) -> None:
    run(db, calls.define_kind("describe", limits=["shop:{shop}", "openai"], weight="{tokens}", call_weight=5))
    step = start(db, "describe", {"shop": "acme", "tokens": 7})
    staged = start_flow(db, node("describe", input={"shop": "b", "tokens": 1}), node("other", limits=["x"], weight=2))

    assert (column(db, step, "limits"), column(db, step, "weight")) == (["shop:acme", "openai"], 7)
    rows = db.execute(
        "select s.limits, s.weight from holdfast.steps s where s.run_id = %s order by s.id", [staged]
    ).fetchall()
    assert rows == [(["shop:b", "openai"], None), (["x"], 2)]
    limit(db, "openai", rate=1, per=seconds(1), burst=12)
    claim(db, batch=1)
    assert value(db, "select tokens from holdfast.limit_list where name = 'openai'") == 0


def test_an_older_worker_does_not_clear_the_limits_of_a_kind(db: DB) -> None:
    """R32"""
    run(db, calls.define_kind("mail", limits=["smtp"], weight="2", call_weight=1))

    run(db, calls.define_kind("mail", queue="mail"))

    row = db.execute("select queue, limits, weight, call_weight from holdfast.kinds").fetchone()
    assert row == ("mail", ["smtp"], "2", 1)


@pytest.mark.parametrize("way", ["expiry", "cancel", "release", "retry", "fail", "continue", "by hand"])
def test_a_slot_comes_back_whichever_way_the_lease_ends(db: DB, clock: Clock, way: str) -> None:
    """R31"""
    limit(db, "api", concurrency=1)
    start(db, limits=["api"])
    waiting = start(db, limits=["api"])
    step = claim_one(db)
    assert claim(db, "b") == []

    match way:
        case "expiry":
            clock.advance(seconds(31))
            rescue(db)
        case "cancel":
            run(db, calls.cancel(str(step.step_id)))
        case "release":
            settle(db, step, Release())
        case "retry":
            settle(db, step, Retry(LIMITED, seconds(60)))
        case "fail":
            settle(db, step, Fail("no"))
        case "continue":
            settle(db, step, Continue(1))
        case "by hand":
            db.execute(
                "update holdfast.steps set state = 'done', finished_at = holdfast.clock(), lease_id = null, "
                "lease_owner = null, lease_until = null where id = %s",
                [step.step_id],
            )

    assert ids(claim(db, "b")) == [waiting]
    assert held(db, "api")[0] == 1


def test_tokens_of_a_step_that_is_handed_back_untried_come_back(db: DB) -> None:
    """R31"""
    limit(db, "api", rate=1, per=seconds(60), burst=1)
    task = start(db, limits=["api"])
    settle(db, claim_one(db), Release())
    again = claim_one(db)
    assert again.step_id == task

    settled(db, again, "release", is_tried=True)

    assert claim(db) == []


def test_a_new_rule_counts_what_is_held(db: DB) -> None:
    tasks = [start(db, limits=["api"]) for _ in range(4)]
    first = claim(db, batch=3)

    limit(db, "api", concurrency=2)
    limit(db, "queue:*", concurrency=9)

    assert (held(db, "api"), held(db, "queue:default")) == ((3, 0), (3, 0))
    assert claim(db) == []
    finish(db, first[:1])
    assert claim(db) == []
    finish(db, first[1:2])
    assert ids(claim(db)) == tasks[3:]


def test_forgetting_a_rule_frees_what_it_kept_waiting(db: DB) -> None:
    limit(db, "api", concurrency=0)
    task = start(db, limits=["api"])
    assert claim(db) == []

    assert run(db, limit_calls.forget_limit("api")) == [True]

    assert ids(claim(db)) == [task]
    assert run(db, limit_calls.forget_limit("api")) == [False]


def test_a_charge_above_the_burst_is_refused_or_waits_for_a_full_bucket(db: DB, clock: Clock) -> None:
    limit(db, "api", rate=1, per=seconds(1), burst=10)
    with pytest.raises(errors.BadInput) as refused:
        start(db, limits=["api"], weight=11)
    assert refused.value.where == "weight"
    assert "11" in refused.value.what
    start(db, limits=["api"], weight=2)
    heavy = start(db, limits=["api"], weight=10)
    claim_one(db)
    limit(db, "api", rate=1, per=seconds(1), burst=5)
    clock.advance(seconds(0.5))
    assert ids(claim(db)) == [heavy]  # the smaller bucket is full
    start(db, limits=["api"])

    clock.advance(seconds(5.999999))
    assert claim(db) == []
    clock.advance(seconds(0.000001))
    assert len(claim(db)) == 1  # ten were taken from five: six come first


def test_a_handler_charges_extra_requests(db: DB, clock: Clock) -> None:
    limit(db, "api", rate=1, per=seconds(1), burst=3)
    start(db, limits=["api"])
    step = claim_one(db)

    assert run(db, limit_calls.charge_limit(step.step_id, step.lease_id, "api", 2)) == [None]
    assert run(db, limit_calls.charge_limit(step.step_id, step.lease_id, "api", 2)) == [seconds(2)]
    clock.advance(seconds(2))
    assert run(db, limit_calls.charge_limit(step.step_id, step.lease_id, "api", 2)) == [None]
    finish(db, [step])
    with pytest.raises(errors.LeaseLost):
        run(db, limit_calls.charge_limit(step.step_id, step.lease_id, "api", 2))


def test_idle_states_are_forgotten_and_others_are_kept(db: DB, clock: Clock) -> None:
    limit(db, "shop:*", concurrency=5, rate=1, per=seconds(1), burst=5)
    for shop in ("a", "b"):
        start(db, limits=[f"shop:{shop}"])
    one, two = claim(db, batch=2)
    finish(db, [one])
    run(db, calls.upkeep())
    assert value(db, "select count(*) from holdfast.limit_states") == 2  # the bucket is not full
    clock.advance(seconds(10))

    run(db, calls.upkeep())

    assert db.execute("select name from holdfast.limit_states").fetchall() == [("shop:b",)]
    finish(db, [two])


def test_a_parked_step_that_is_cancelled_or_parked_by_hand_leaves_the_limits_queue(db: DB) -> None:
    limit(db, "api", concurrency=1)
    tasks = [start(db, limits=["api"]) for _ in range(4)]
    step = claim(db, batch=4)
    run(db, calls.cancel(str(tasks[1])))
    run(db, calls.park_steps([tasks[2]], "approval"))
    assert held(db, "api") == (1, 1)

    finish(db, step)

    assert ids(claim(db, batch=4)) == [tasks[3]]
    run(db, calls.unpark_steps([tasks[2]]))
    assert column(db, tasks[2], "due_at") is not None


def test_the_oldest_of_a_limits_queue_is_found_in_every_queue_and_priority(db: DB, clock: Clock) -> None:
    limit(db, "api", concurrency=0)
    oldest = "select oldest_parked_at from holdfast.limit_list where name = 'api'"
    places = [("b", 5), ("a", 0), ("a", 9), ("b", 0), ("c", 3)]
    begun = clock.now()
    for queue, priority in places:
        start(db, limits=["api"], queue=queue, priority=priority)
        start(db, limits=["api"], queue=queue, priority=priority)
        clock.advance(seconds(1))
    for queue in ("a", "b", "c"):
        assert claim(db, queue=queue, batch=9) == []

    for place, (queue, priority) in enumerate(places):
        assert value(db, oldest) == begun + seconds(place)
        for (step_id,) in db.execute(
            "select id from holdfast.steps where queue = %s and priority = %s", [queue, priority]
        ).fetchall():
            run(db, calls.cancel(str(step_id)))
    assert value(db, oldest) is None


def test_a_queue_that_nobody_serves_keeps_no_slot_from_another(db: DB) -> None:
    limit(db, "api", concurrency=1)
    start(db, limits=["api"], queue="a")
    start(db, limits=["api"], queue="b")
    first = claim(db, queue="a")
    start(db, limits=["api"], queue="a")
    assert claim(db, "w", queue="b") == claim(db, queue="a") == []
    run(db, calls.pause_queue("a"))

    finish(db, first)

    assert len(claim(db, "w", queue="b")) == 1


def test_a_kind_that_the_worker_does_not_serve_keeps_no_slot_from_another(db: DB) -> None:
    limit(db, "api", concurrency=1)
    start(db, "x", limits=["api"])
    first = claim(db, "w", batch=5)
    for _ in range(3):
        start(db, "x", limits=["api"])
    mine = start(db, "y", limits=["api"])
    assert claim(db, "w", batch=5) == []
    finish(db, first)

    assert ids(claim(db, "v", kinds=["y"], batch=5)) == [mine]


def test_a_step_of_a_cancelled_run_takes_nothing_from_a_limit(db: DB) -> None:
    limit(db, "api", rate=1, per=timedelta(hours=1), burst=1)
    run_id = start_flow(db, node("a", limits=["api"]))
    db.execute("select holdfast.set_actor('user', 'test')")
    db.execute("begin")
    db.execute("select holdfast.set_actor('user', 'test')")
    db.execute("select holdfast.move_runs(array[%s]::uuid[], 'cancelled', holdfast.clock())", [run_id])
    db.execute("update holdfast.runs set moving = 'cancelled' where id = %s", [run_id])
    db.execute("commit")
    other = start(db, limits=["api"])

    assert ids(claim(db, batch=5)) == [other]
    run(db, calls.upkeep())


@pytest.mark.unsound
def test_a_parked_step_whose_machine_lacks_the_move_leaves_the_limits_queue(db: DB) -> None:
    add_machine(
        db, "odd.step", "here:open started there:held\nthere:held succeeded end:over=succeeded", initial="here:open"
    )
    limit(db, "api", concurrency=0)
    step = insert_step(db, "odd.step", "here", limits=["api"])
    assert claim(db) == []
    limit(db, "api", concurrency=1)

    assert claim(db) == []

    assert column(db, step, "parked_for") == "move"
    assert held(db, "api") == (0, 0)

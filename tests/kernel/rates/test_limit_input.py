"""Rules, starts and outcomes whose limits make no sense are refused with the field at fault."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import psycopg
import pytest

from holdfast import errors
from holdfast.kernel import calls, limit_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.limits import limit, settled
from kernel.steps import (
    DB,
    claim_one,
    column,
    node,
    seconds,
    stage,
    start,
    start_flow,
    value,
)

pytestmark = pytest.mark.one_server


@pytest.fixture(autouse=True)
def frozen(clock: Clock) -> None:
    clock.freeze()


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        ({"name": ""}, "limit"),
        ({"name": "a*"}, "limit"),
        ({"concurrency": -1}, "concurrency"),
        ({"rate": 1}, "per"),
        ({"rate": 0, "per": seconds(1)}, "rate"),
        ({"rate": Decimal("nan"), "per": seconds(1)}, "rate"),
        ({"burst": 1}, "rate"),
        ({"rate": 1, "per": seconds(1), "burst": -1}, "burst"),
        ({"rate": 1, "per": seconds(-1)}, "per"),
        ({"breaker_after": 1}, "breaker_after"),
        ({"breaker_after": 0, "breaker_for": seconds(1)}, "breaker_after"),
        ({"breaker_counts": ["X"]}, "breaker_counts"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(db: DB, rule: dict[str, Any], where: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        limit(db, **{"name": "api", **rule})

    assert refused.value.where == where
    assert refused.value.next
    assert value(db, "select count(*) from holdfast.limits") == 0


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"limits": ["a", "b", "c", "d"]}, "limits"),
        ({"limits": ["a", "a"]}, "limits"),
        ({"limits": ["queue:x"]}, "limits"),
        ({"limits": ["shop:*"]}, "limit"),
        ({"limits": [""]}, "limit"),
        ({"weight": -1}, "weight"),
        ({"weight": 0}, "weight"),
        ({"weight": Decimal("nan")}, "weight"),
    ],
)
def test_a_start_with_limits_that_make_no_sense_is_refused(db: DB, options: dict[str, Any], where: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        start(db, **options)
    assert refused.value.where == where
    assert refused.value.next

    with pytest.raises(errors.BadInput) as refused:
        start_flow(
            db,
            node("a"),
            node("b", **{k: float(v) if k == "weight" else v for k, v in options.items()})
            if options.get("weight") != Decimal("nan")
            else node("b", weight="NaN"),
        )
    assert value(db, "select count(*) from holdfast.steps") == 0


def test_an_input_that_lacks_a_field_of_the_kinds_template_is_refused(db: DB) -> None:
    run(db, calls.define_kind("mail", limits=["shop:{shop}"], weight="{n}"))

    for given in ({"n": 1}, {"shop": "a"}, {"shop": None, "n": 1}, {"shop": "a", "n": "many"}, []):
        with pytest.raises(errors.BadInput):
            start(db, "mail", given)
    assert value(db, "select count(*) from holdfast.steps") == 0
    assert start(db, "mail", {"n": 1}, limits=[])


@pytest.mark.parametrize("first", ["plain", "mail"])
def test_a_bulk_start_takes_from_each_input_what_its_kind_names(db: DB, first: str) -> None:
    """Steps of the same sort as the first one are looked up once, unless their input decides"""
    run(db, calls.define_kind("mail", limits=["shop:{shop}"], weight="{n}"))
    run(db, calls.define_kind("plain", limits=["all"], weight="3", batch=5))
    staged = [("mail", '{"shop": "a", "n": 2}'), ("plain", "{}"), ("mail", '{"shop": "b", "n": 4}'), ("plain", "{}")]
    stage(db, sorted(staged, key=lambda step: step[0] != first))

    rows = db.execute("select kind, limits, weight, batch_key from holdfast.steps order by kind, id").fetchall()

    assert rows == [("mail", ["shop:a"], 2, None), ("mail", ["shop:b"], 4, None)] + [("plain", ["all"], 3, "")] * 2


@pytest.mark.parametrize("call_weight", [-1, Decimal("nan")])
def test_a_call_weight_that_makes_no_sense_is_refused(db: DB, call_weight: Any) -> None:
    with pytest.raises(errors.BadInput) as refused:
        run(db, calls.define_kind("mail", call_weight=call_weight))
    assert refused.value.where == "call_weight"


def test_pausing_a_family_without_a_rule_is_refused(db: DB) -> None:
    with pytest.raises(errors.NotFound) as refused:
        run(db, limit_calls.pause_limit("shop:*"))
    assert refused.value.next


def test_an_outcome_that_pauses_a_family_is_refused_whole(db: DB) -> None:
    start(db)
    step = claim_one(db)
    for outcome, pause in (("retry", "shop:*"), ("retry", ""), ("snooze", 7), ("done", "shop:a")):
        with pytest.raises(psycopg.Error) as refused:
            settled(db, step, outcome, pause=pause)
        assert refused.value.sqlstate == "RN005"
    assert column(db, step.step_id, "lease_id") == step.lease_id

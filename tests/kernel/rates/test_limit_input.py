"""Rules, starts and outcomes whose limits make no sense are refused with the field at fault."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from json import dumps
from typing import Any

import psycopg
import pytest

from holdfast import errors
from holdfast.kernel import bulk, calls, limit_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.limits import limit, settled
from kernel.steps import (
    DB,
    claim_one,
    column,
    fingerprint,
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


STARTS: dict[str, Callable[[DB, dict[str, Any]], object]] = {
    "start_task": lambda db, options: start(db, **options),
    "start_tasks": lambda db, options: run(
        db, calls.start_tasks([{"name": "mail"}, {"name": "mail", **json(options)}])
    ),
    "start_step": lambda db, options: run(db, calls.start_step("rules.check", "mail", **options)),
    "start_run": lambda db, options: start_flow(db, node("a"), node("mail", **json(options))),
    "staged_steps": lambda db, options: bulk.start_tasks(
        db, [bulk.Start("mail", "{}"), bulk.Start("mail", "{}", **options)]
    ),
}


def json(options: dict[str, Any]) -> dict[str, Any]:
    """Write options as a plan in JSON has them; it has no number for a NaN."""
    return {name: str(given) if isinstance(given, Decimal) else given for name, given in options.items()}


@pytest.mark.parametrize("way", STARTS)
@pytest.mark.parametrize(
    ("options", "where", "value"),
    [
        ({"limits": ["a", "b", "c", "d"]}, "limits", "4"),
        ({"limits": ["a", "a"]}, "limits", "a"),
        ({"limits": ["queue:x"]}, "limits", "queue:x"),
        ({"limits": ["shop:*"]}, "limit", "shop:*"),
        ({"limits": [""]}, "limit", ""),
        ({"weight": -1}, "weight", "-1"),
        ({"weight": 0}, "weight", "0"),
        ({"weight": Decimal("nan")}, "weight", "NaN"),
        ({"limits": ["api"], "weight": 6}, "weight", "6"),
    ],
)
def test_a_start_with_limits_that_make_no_sense_is_refused_whole(
    db: DB, way: str, options: dict[str, Any], where: str, value: str
) -> None:
    """By each way to start a step; the steps beside it in the same call are not started either."""
    limit(db, "api", rate=1, per=seconds(1), burst=5)
    before = fingerprint(db)

    with pytest.raises(errors.BadInput) as refused:
        STARTS[way](db, options)

    assert refused.value.where == where
    assert value in refused.value.what
    assert refused.value.next
    assert fingerprint(db) == before


def test_an_input_that_lacks_a_field_of_the_kinds_template_is_refused(db: DB) -> None:
    run(db, calls.define_kind("mail", limits=["shop:{shop}"], weight="{n}"))

    for given in ({"n": 1}, {"shop": "a"}, {"shop": None, "n": 1}, {"shop": "a", "n": "many"}, []):
        for begin in (
            lambda given: start(db, "mail", given),
            lambda given: run(db, calls.start_tasks([{"name": "plain"}, {"name": "mail", "input": given}])),
            lambda given: start_flow(db, node("plain"), node("mail", input=given)),
            lambda given: stage(db, [("plain", "{}"), ("mail", dumps(given))]),
        ):
            with pytest.raises(errors.BadInput) as refused:
                begin(given)
            assert refused.value.next
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


@pytest.mark.parametrize(
    ("definition", "where"),
    [
        ({"call_weight": -1}, "call_weight"),
        ({"call_weight": Decimal("nan")}, "call_weight"),
        ({"limits": ["a", "b", "c", "{d}"]}, "limits"),
        ({"weight": "-1"}, "weight"),
        ({"weight": "NaN"}, "weight"),
        ({"weight": "0"}, "weight"),
    ],
)
def test_a_kind_with_limits_that_make_no_sense_is_refused(db: DB, definition: dict[str, Any], where: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        run(db, calls.define_kind("mail", **definition))

    assert refused.value.where == where
    assert refused.value.next
    assert value(db, "select count(*) from holdfast.kinds") == 0


def test_a_weight_of_0_is_for_kinds_whose_calls_have_a_weight(db: DB) -> None:
    run(db, calls.define_kind("mail", call_weight=2))
    limit(db, "api", rate=1, per=seconds(1), burst=5)

    start(db, limits=["api"], weight=0)

    claim_one(db)
    assert value(db, "select tokens from holdfast.limit_list where name = 'api'") == 3


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

"""Limits of a flow's steps: `{field}` is a field of the context, and of an item in a map, wherever a run is started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection
from pydantic import BaseModel

from flow.asking import readiness
from holdfast import Holdfast, RunFailed
from holdfast.errors import BadDefinition, BadInput
from holdfast.flow import calls
from holdfast.flow.define import Flow
from holdfast.kernel.db import run
from holdfast.models import Done
from holdfast.testing import Clock, drain
from kernel.limits import limit
from kernel.steps import claim, claim_one, settle, value
from worker.running import burst, seconds

pytestmark = pytest.mark.one_server

DB = Connection[Any]
LIMITS = "select n.name, s.limits, s.weight from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id"


class Order(BaseModel):
    order_id: int
    shop: str
    tokens: int = 3
    goods: list[str] = []
    buyer: dict[str, str] = {}


def named(db: DB, run_id: UUID) -> dict[str, tuple[list[str] | None, Any]]:
    """Read the limits and the weight of each step of a run."""
    return {name: (limits, weight) for name, limits, weight in db.execute(f"{LIMITS} where n.run_id = %s", [run_id])}


@pytest.fixture
def order(hf: Holdfast) -> Flow:
    """A flow whose steps name limits by the context and by an item."""
    order = hf.flow("order", context=Order)

    @order.step(limits=["shop:{shop}", "buyer:{buyer.id}"], weight="{tokens}", call_weight=5)
    def reserve(order_id: int) -> list[dict[str, Any]]:
        return [{"id": "cup", "size": 2}, {"id": "pot", "size": 1}]

    @order.step(each=reserve, limits=["shelf:{item.id}", "shop:{shop}"], weight="{item.size}")
    def fetch(item: dict[str, Any]) -> str:
        return str(item["id"])

    @order.step(after=fetch, limits=["ledger"])
    def close(fetch: list[str]) -> int:
        return len(fetch)

    return order


def test_steps_name_limits_by_the_context_and_items_also_by_the_item(hf: Holdfast, db: DB, order: Flow) -> None:
    started = order.start(order_id=1, shop="acme", buyer={"id": "b1"})

    assert named(db, started.id) == {
        "reserve": (["shop:acme", "buyer:b1"], 3),
        "fetch": (None, None),
        "close": (["ledger"], None),
    }
    drain(hf)
    assert started.result_of("close") == 2
    assert named(db, started.id)["fetch[0]"] == (["shelf:cup", "shop:acme"], 2)
    assert named(db, started.id)["fetch[1]"] == (["shelf:pot", "shop:acme"], None)  # a weight of 1 is not stored
    assert value(db, "select call_weight from holdfast.kinds where kind = 'order.reserve'") == 5


def test_a_start_by_plain_sql_fills_in_the_same_limits(hf: Holdfast, db: DB, order: Flow) -> None:
    burst(hf)  # which defines the flow
    context = {"order_id": 1, "shop": "acme", "tokens": 7, "buyer": {"id": "b1"}}

    (task_id,) = run(db, calls.start_task("order", context))

    assert named(db, task_id)["reserve"] == (["shop:acme", "buyer:b1"], 7)
    for lacks in ("shop", "buyer", "tokens"):
        with pytest.raises(BadInput) as refused:
            run(db, calls.start_task("order", {name: given for name, given in context.items() if name != lacks}))
        assert lacks in refused.value.what
        assert refused.value.next
    assert value(db, "select count(*) from holdfast.runs") == 1


def test_a_claim_obeys_them_and_readiness_says_what_a_claim_would_take(
    hf: Holdfast, db: DB, clock: Clock, order: Flow
) -> None:
    clock.freeze()
    limit(db, "shop:*", concurrency=1)
    one, two, other = (order.start(order_id=n, shop=s, buyer={"id": "b"}).id for n, s in ((1, "a"), (2, "a"), (3, "b")))

    def ready() -> list[UUID]:
        return [task for task in (one, two, other) if readiness(db, task)["reserve"]["ready_for_execution"]]

    assert ready() == [one, two, other]  # each of them: a claim takes one of the shop's two
    held = claim(db, batch=9)
    assert len(held) == 2
    assert ready() == []
    assert readiness(db, two)["reserve"]["waiting_reason"] == "limited"

    settle(db, held[0], Done([]))
    assert ready() == [two]
    assert value(db, "select run_id from holdfast.steps where id = %s", claim_one(db).step_id) == two


def test_the_steps_of_a_subflow_name_limits_by_its_own_context(hf: Holdfast, db: DB) -> None:
    bill = hf.flow("bill")
    bill.step(limits=["bank:{bank}"], weight="{cents}", name="pay")(_pay)
    month = hf.flow("month")
    month.step(name="banks")(_banks)

    @month.subflow(bill, each="banks")
    def bills(item: str, cents: int) -> dict[str, Any]:
        return {"bank": item, "cents": cents}

    started = month.start(cents=4)
    drain(hf)

    assert started.result_of("bills") == [{"pay": "x 4"}, {"pay": "y 4"}]
    assert named(db, started.id)["bills[1].pay"] == (["bank:y"], 4)
    assert named(db, started.id)["bills[1]"] == (None, None)


def _banks() -> list[str]:
    return ["x", "y"]


def _pay(bank: str, cents: int) -> str:
    return f"{bank} {cents}"


def test_a_run_that_is_repeated_from_a_step_keeps_its_limits(hf: Holdfast, db: DB, order: Flow) -> None:
    started = order.start(order_id=1, shop="acme", buyer={"id": "b1"})
    drain(hf)
    before = named(db, started.id)

    again = started.retry_from("fetch[1]")

    assert named(db, again.id) == before


def test_an_item_without_the_field_of_a_limit_fails_its_map(hf: Holdfast, db: DB) -> None:
    flow = hf.flow("flow")

    @flow.step
    def items() -> list[dict[str, str]]:
        return [{"shop": "acme"}, {}]

    @flow.step(each=items, limits=["shop:{item.shop}"])
    def push(item: dict[str, str]) -> None: ...

    started = flow.start()
    drain(hf)

    with pytest.raises(RunFailed) as failed:
        started.result()
    assert "item.shop" in str(failed.value)
    assert value(db, "select count(*) from holdfast.run_steps where name like 'push[%%'") == 0


def defined(**options: Any) -> None:
    flow = Holdfast("").flow("flow")
    flow.step(**options)(takes_shop)
    flow.definition()


def takes_shop(shop: str, goods: list[str], is_gift: bool = False) -> None: ...


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"limits": ["shop:{shpo}"]}, "shpo"),
        ({"weight": "{tokens}"}, "tokens"),
        ({"limits": ["shop:{item}"]}, "item"),
        ({"limits": ["shop:{goods}"]}, "goods"),
        ({"limits": ["shop:{is_gift}"]}, "is_gift"),
        ({"limits": ["a", "b", "c", "d"]}, "limits"),
        ({"limits": "shop"}, "limits"),
        ({"limits": ["queue:mail"]}, "limits"),
        ({"weight": -1}, "weight"),
        ({"weight": float("nan")}, "weight"),
        ({"weight": 0}, "weight"),
        ({"call_weight": -1}, "call_weight"),
    ],
)
def test_limits_that_make_no_sense_are_refused_where_the_flow_is_defined(options: dict[str, Any], where: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        defined(**options)

    assert refused.value.where == where
    assert refused.value.next


def test_a_field_that_a_declared_context_lacks_is_refused_at_its_step() -> None:
    flow = Holdfast("").flow("flow", context=Order)

    for limits in (["shop:{shpo}"], ["shop:{item}"], ["shop:{goods}"]):
        with pytest.raises(BadDefinition):
            flow.step(limits=limits)(_nothing)


def _nothing() -> None: ...


def test_the_result_of_a_parent_cannot_name_a_limit() -> None:
    flow = Holdfast("").flow("flow")
    flow.step(name="shop")(_nothing)
    flow.step(name="push", after="shop", limits=["shop:{shop}"])(_takes_shop_of_a_step)

    with pytest.raises(BadDefinition) as refused:
        flow.definition()
    assert refused.value.where == "shop"


def _takes_shop_of_a_step(shop: Any) -> None: ...


@pytest.mark.parametrize("option", [{"limits": ["a"]}, {"weight": 2}, {"call_weight": 1}])
def test_a_subflow_has_no_limits_of_its_own(option: dict[str, Any]) -> None:
    hf = Holdfast("")
    inner = hf.flow("inner")
    inner.step(_nothing)

    with pytest.raises(BadDefinition) as refused:
        hf.flow("outer").subflow(inner, **option)(_nothing)
    assert refused.value.where in option


@pytest.mark.parametrize(
    "step", [{"limits": "shop"}, {"limits": ["queue:a"]}, {"limits": ["a"] * 4}, {"weight": "many"}, {"weight": -1}]
)
def test_a_definition_by_plain_sql_is_checked_too(db: DB, step: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        run(db, calls.define_flow("flow", [{"kind": "a", "name": "a", **step}], namespace="n", version="1"))
    assert refused.value.next
    assert value(db, "select count(*) from flow.definitions") == 0


YAML = """
name: order
context:
  type: object
  properties:
    shop: {{type: string}}
    tokens: {{type: integer}}
  required: [shop, tokens]
  additionalProperties: false
steps:
  - name: push
    limits: ["shop:{{{field}}}", openai]
    weight: "{{tokens}}"
    call_weight: 5
  - {{name: pull, weight: 2, limits: [openai]}}
environments:
  small:
    steps: {{push: {{limits: null, weight: null}}}}
"""


def _push(shop: str) -> None: ...


def test_a_document_names_limits_as_python_does(hf: Holdfast, db: DB) -> None:
    flow = hf.flow.load(YAML.format(field="shop"), handlers={"push": _push, "pull": _nothing})

    started = flow.start(shop="acme", tokens=7)

    assert named(db, started.id) == {"push": (["shop:acme", "openai"], 7), "pull": (["openai"], 2)}
    small = Holdfast("").flow.load(
        YAML.format(field="shop"), handlers={"push": _push, "pull": _nothing}, environment="small"
    )
    assert "limits" not in small.plan[0]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda text: text.format(field="shpo"), "shpo"),
        (lambda text: text.format(field="shop").replace("[openai]", "openai"), "steps[1].limits"),
        (lambda text: text.format(field="shop").replace("[openai]", "[a, b, c, d]"), "steps[1].limits"),
        (lambda text: text.format(field="shop").replace("weight: 2", "weight: many"), "weight"),
        (lambda text: text.format(field="shop").replace("weight: 2", "weight: [1]"), "steps[1].weight"),
    ],
)
def test_a_document_with_limits_that_make_no_sense_is_refused(change: Callable[[str], str], names: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        Holdfast("").flow.load(change(YAML), handlers={"push": _push, "pull": _nothing})

    assert names in refused.value.what


def test_a_charge_above_the_burst_is_refused_at_the_start(hf: Holdfast, db: DB, order: Flow) -> None:
    limit(db, "shop:*", rate=1, per=seconds(1), burst=10)

    with pytest.raises(BadInput) as refused:
        order.start(order_id=1, shop="acme", tokens=11, buyer={"id": "b"})
    assert refused.value.where == "weight"
    assert value(db, "select count(*) from holdfast.runs") == 0

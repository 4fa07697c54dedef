"""Versions of a flow: each task goes on as it began, also where the code knows only the new one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.flow import calls
from holdfast.flow.define import Flow
from holdfast.testing import drain
from kernel.steps import value

pytestmark = pytest.mark.one_server

DB = Connection[Any]


@pytest.fixture
def later(dsn: str) -> Iterator[Holdfast]:
    """The app as it is deployed later, on the same database."""
    app = Holdfast(dsn)
    yield app
    app.close()


def first_version(hf: Holdfast) -> Flow:
    order = hf.flow("order", version="1")

    @order.step
    def reserve(order_id: int) -> str:
        return f"one reserved {order_id}"

    @order.step(after=reserve)
    def charge(reserve: str) -> str:
        return f"one charged, {reserve}"

    return order


def second_version(hf: Holdfast) -> Flow:
    """Other parameters, another shape, async where the first is not."""
    order = hf.flow("order", version="2")

    @order.step
    async def charge(order_id: int, currency: str = "EUR") -> str:
        return f"two charged {order_id} {currency}"

    @order.step(after=charge)
    def reserve(charge: str) -> list[str]:
        return [f"two reserved, {charge}"]

    @order.step(each=reserve)
    def ship(item: str) -> str:
        return f"shipped: {item}"

    return order


def standing(db: DB) -> dict[str, str]:
    rows = db.execute(
        "select n.name, l.standing from holdfast.step_list l join holdfast.run_steps n on n.step_id = l.id"
    )
    return dict(rows.fetchall())


def test_two_versions_in_one_app_each_serve_their_own_tasks(hf: Holdfast) -> None:
    """Other functions, parameters, shapes and lanes under the same step names."""
    old, new = first_version(hf), second_version(hf)

    one, two = old.start(order_id=1), new.start(order_id=2, currency="CHF")
    drain(hf)

    assert one.result(1) == {"reserve": "one reserved 1", "charge": "one charged, one reserved 1"}
    assert two.result_of("charge") == "two charged 2 CHF"
    assert two.result_of("ship") == ["shipped: two reserved, two charged 2 CHF"]


def test_a_start_by_definition_takes_the_version_that_is_named_or_the_last(hf: Holdfast, db: DB) -> None:
    """By plain SQL too."""
    old, new = first_version(hf), second_version(hf)
    drain(hf)

    (named,) = hf._engine.make(calls.start_task("order", {"order_id": 1}, version="1"))
    drain(hf)

    assert old.handle(named).result_of("charge") == "one charged, one reserved 1"
    assert {flow.title.version for flow in (old, new)} == {
        row[0] for row in db.execute("select version from flow.definitions").fetchall()
    }


def test_code_that_has_only_the_new_version_ends_old_tasks_on_their_old_shape(hf: Holdfast, later: Holdfast) -> None:
    """A task's shape is its rows; what still bears the name serves it."""
    task = first_version(hf).start(order_id=5)
    new = later.flow("order", version="2")

    @new.step
    def charge(order_id: int) -> str:
        return f"two charged {order_id}"

    @new.step
    def reserve(order_id: int) -> str:
        return f"two reserved {order_id}"

    drain(later)

    assert task.result(1) == {"reserve": "two reserved 5", "charge": "two charged 5"}


def test_a_step_that_no_code_knows_any_more_waits_for_one_that_does(hf: Holdfast, later: Holdfast, db: DB) -> None:
    """C-89, T-129: it is shown as without a handler, and nothing is failed."""
    task = first_version(hf).start(order_id=5)
    new = later.flow("order", version="2")
    new.step(name="reserve")(lambda order_id: f"two reserved {order_id}")

    drain(later)
    drain(later)

    assert standing(db) == {"reserve": "over", "charge": "no handler"}
    assert task.status().state == "in_progress"
    drain(hf)
    assert task.result(1)["charge"] == "one charged, two reserved 5"


def test_a_step_whose_new_function_takes_something_else_fails_by_itself(hf: Holdfast, later: Holdfast, db: DB) -> None:
    """It names what is missing, and a retry under code that has the old version mends it."""
    task = first_version(hf).start(order_id=5)
    new = later.flow("order", version="2")
    new.step(name="reserve")(lambda order_id, warehouse: (order_id, warehouse))

    drain(later)

    (reserve, _) = task.steps()
    assert (reserve.state, reserve.error["type"]) == ("error", "InputRefused")
    assert "warehouse" in reserve.error["message"]
    task.retry("the old version is back")
    drain(hf)
    assert task.result(1)["reserve"] == "one reserved 5"


def inner_first(hf: Holdfast) -> Flow:
    billing = hf.flow("billing", version="1")

    @billing.step
    def draw(invoice: int) -> str:
        return f"drawn {invoice}"

    @billing.step(after=draw)
    def send(draw: str) -> str:
        return f"{draw}, sent"

    @billing.step(after=draw)
    def file(draw: str) -> str:
        return f"{draw}, filed"

    return billing


def inner_second(hf: Holdfast) -> Flow:
    """The same step names under another shape, with another end."""
    billing = hf.flow("billing", version="2")

    @billing.step
    def file(invoice: int) -> str:
        return f"two filed {invoice}"

    @billing.step
    def send(invoice: int) -> str:
        return f"two sent {invoice}"

    @billing.step(after=[file, send])
    def draw(invoice: int) -> str:
        return f"two drew {invoice}"

    return billing


def outer(hf: Holdfast, billing: Flow, version: str) -> Flow:
    order = hf.flow("order", version=version)

    @order.step
    def items(order_id: int) -> list[int]:
        return [order_id, order_id + 1]

    @order.subflow(billing, after=items)
    def bill(order_id: int) -> dict[str, int]:
        return {"invoice": order_id}

    @order.subflow(billing, each=items)
    def bills(item: int) -> dict[str, int]:
        return {"invoice": item}

    @order.step(after=bill)
    def close(bill: dict[str, str]) -> dict[str, str]:
        return bill

    return order


def test_a_sub_flow_is_the_one_that_it_was_at_the_start(hf: Holdfast, later: Holdfast, db: DB) -> None:
    """A new version of the inner flow, deployed in between, changes neither the shape nor what it ends with."""
    task = outer(hf, inner_first(hf), "1").start(order_id=1)
    outer(later, inner_second(later), "2")

    drain(later)

    assert task.result(1)["close"] == {"send": "two sent 1", "file": "two filed 1"}
    assert task.result_of("bills") == [
        {"send": f"two sent {invoice}", "file": f"two filed {invoice}"} for invoice in (1, 2)
    ]
    edges = db.execute(
        """select p.name, c.name from holdfast.edges e join holdfast.run_steps p on p.step_id = e.step_id
             join holdfast.run_steps c on c.step_id = e.next_id where p.name like 'bill.%' order by p.name, c.name"""
    ).fetchall()
    assert edges == [
        ("bill.draw", "bill.file"), ("bill.draw", "bill.send"), ("bill.file", "bill"), ("bill.send", "bill"),
    ]  # fmt: skip


def test_a_task_that_opened_its_sub_flow_before_the_deployment_ends_on_it(hf: Holdfast, later: Holdfast) -> None:
    """The opening by the old code, the end by the new."""
    billing = hf.flow("billing", version="1")
    billing.step(name="draw", queue="slow")(lambda invoice: f"drawn {invoice}")
    order = hf.flow("order", version="1")
    order.subflow(billing, name="bill")(lambda order_id: {"invoice": order_id})
    task = order.start(order_id=3)
    drain(hf, queues=["default"])
    newer = later.flow("billing", version="2")
    newer.step(name="draw", queue="slow")(lambda invoice: f"two drew {invoice}")
    newer.step(name="send", after="draw")(lambda draw: draw)
    after = later.flow("order", version="2")
    after.subflow(newer, name="bill")(lambda order_id: {"invoice": order_id})

    drain(later)

    assert task.result(1) == {"bill": {"draw": "two drew 3"}, "bill.draw": "two drew 3"}


def test_both_versions_of_a_sub_flow_in_one_app_serve_their_own(hf: Holdfast) -> None:
    """The version that the opening step keeps chooses."""
    one, two = outer(hf, inner_first(hf), "1"), outer(hf, inner_second(hf), "2")

    old, new = one.start(order_id=1), two.start(order_id=1)
    drain(hf)

    assert old.result_of("close") == {"send": "drawn 1, sent", "file": "drawn 1, filed"}
    assert new.result_of("close") == {"draw": "two drew 1"}


def test_a_context_that_is_nested_too_deep_fails_its_own_step_alone(hf: Holdfast, db: DB) -> None:
    """With two versions the worker reads what came; others of the batch go on."""
    old, new = first_version(hf), second_version(hf)
    drain(hf)
    deep = "[" * 3000 + "]" * 3000
    db.execute("select flow.start_task('order', %s::jsonb, version => '1')", [f'{{"order_id": {deep}}}'])
    good, also = old.start(order_id=1), new.start(order_id=2)

    drain(hf)

    assert good.status().state == also.status().state == "complete"
    assert value(db, "select count(*) from holdfast.steps where state = 'error'") == 1

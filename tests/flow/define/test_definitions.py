"""What a definition says of its context and of its starts, and how it is read back from the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from pydantic import BaseModel

from holdfast import Ctx, Holdfast
from holdfast.errors import BadDefinition, InputRefused
from holdfast.flow import calls
from holdfast.flow.define import Flow
from holdfast.testing import drain
from kernel.steps import value

pytestmark = pytest.mark.one_server

DB = Connection[Any]
TEMPLATES = "select name, handler, depends_on, retry_limit, retryable, skippable, handler_config, description"


@dataclass
class Address:
    street: str


class Order(BaseModel):
    order_id: int
    note: str = ""


def nothing() -> None: ...


def one(item: str) -> None: ...


@pytest.fixture
def order(hf: Holdfast) -> Flow:
    """A flow with one step, called first."""
    flow = hf.flow("order")
    flow.step(name="first")(nothing)
    return flow


def test_one_field_of_the_context_has_one_type(hf: Holdfast) -> None:
    """T-16: in all steps."""
    order = hf.flow("order")
    order.step(name="a")(_takes_an_int)

    with pytest.raises(BadDefinition, match=r"to .*int .*str"):
        order.step(name="b")(_takes_a_str)
    with pytest.raises(BadDefinition, match=r"to .*int .*Address"):
        order.step(name="c")(_takes_an_address)


def _takes_an_int(to: int) -> None: ...


def _takes_a_str(to: str) -> None: ...


def _takes_an_address(to: Address) -> None: ...


def test_a_parameter_that_nothing_gives_is_refused_where_the_context_is_declared(hf: Holdfast) -> None:
    """T-16: with a default it may stay."""
    order = hf.flow("order", context=Order)

    @order.step
    def look(order_id: int, speed: int = 3) -> int:
        return speed

    with pytest.raises(BadDefinition, match=r"ship .*adress.*order_id, note"):
        order.step(name="ship")(lambda adress: adress)
    run = order.start(order_id=1)
    drain(hf)
    assert run.result_of(look) == 3


def test_what_may_be_skipped_may_be_none(hf: Holdfast, order: Flow) -> None:
    """T-23: said when the flow is defined, not when it happens."""
    order.step(name="maybe", skippable=True)(nothing)
    order.step(name="checked", when=lambda: True)(nothing)

    def takes(maybe: int) -> None: ...

    def takes_checked(checked: dict[str, int]) -> None: ...

    for function, after in ((takes, "maybe"), (takes_checked, "checked")):
        with pytest.raises(BadDefinition, match=f"{after}.*None"):
            order.step(after=after)(function)


def test_a_map_over_what_was_skipped_is_over_nothing(hf: Holdfast) -> None:
    order = hf.flow("order")

    @order.step(when=lambda: False)
    def items() -> list[str]:
        return ["a"]

    @order.step(each=items)
    def ship(item: str) -> str:
        return item

    run = order.start()
    drain(hf)

    assert run.result(1) == {"items": None, "ship": []}


def test_a_flow_is_defined_once(hf: Holdfast, order: Flow) -> None:
    """T-17: the second leaves nothing behind that a worker would say."""
    with pytest.raises(BadDefinition, match=r"order 0\.1\.0"):
        hf.flow("order")

    run = order.start()
    drain(hf)
    assert run.status().state == "complete"


@pytest.mark.parametrize("name", ["", "or der", "1st", "a.b", "gro\u0308sse"])
def test_a_flow_and_a_namespace_have_names_that_a_kind_can_hold(hf: Holdfast, name: str) -> None:
    """T-17."""
    with pytest.raises(BadDefinition, match="a flow"):
        hf.flow(name)
    with pytest.raises(BadDefinition, match="a namespace"):
        hf.flow("order", namespace=name)
    with pytest.raises(BadDefinition, match="no flow"):
        hf.flows.find(name)


def test_an_unknown_flow_is_refused_and_the_known_are_named(hf: Holdfast, order: Flow) -> None:
    """T-17: in Python and in SQL."""
    drain(hf)
    with pytest.raises(BadDefinition, match=r"ordr .*order 0\.1\.0"):
        hf.flows.find("ordr")
    with pytest.raises(Exception, match=r"ordr .*default"):
        hf._engine.make(calls.start_task("ordr"))


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({}, "order_id: .*required"),
        ({"order_id": "x"}, "order_id: Input"),
        ({"order_id": 1, "z": 1}, "z: "),
    ],
)
def test_a_start_that_is_refused_stores_nothing(hf: Holdfast, db: DB, context: dict[str, Any], said: str) -> None:
    """T-18."""
    order = hf.flow("order")

    @order.step
    def look(order_id: int) -> None: ...

    with pytest.raises(InputRefused, match=said):
        order.start(**context)
    for table in ("runs", "steps", "run_steps", "edges", "keys", "journal"):
        assert value(db, f"select count(*) from holdfast.{table}") == 0, table


def test_the_database_has_a_step_name_once_in_a_run(hf: Holdfast, order: Flow, db: DB) -> None:
    """T-22: whoever adds it."""
    run = order.start()

    with pytest.raises(psycopg.errors.UniqueViolation):
        db.execute(
            "insert into holdfast.run_steps (run_id, step_id, name) "
            "select run_id, nextval('holdfast.step_ids'), name from holdfast.run_steps where run_id = %s",
            [run.id],
        )
    with pytest.raises(psycopg.Error, match="first"):
        db.execute("""select holdfast.add_steps(%s, 'flow.step', '[{"name": "first", "kind": "k"}]')""", [run.id])


def test_the_same_key_starts_a_task_once(hf: Holdfast, order: Flow, db: DB) -> None:
    """T-22: initialising it again changes nothing."""
    first, again = order.options(key="k").start(), order.options(key="k").start()

    assert first.id == again.id
    assert value(db, "select count(*) from holdfast.steps") == 1


def test_a_definition_is_read_back_as_it_was_written(hf: Holdfast, db: DB) -> None:
    """T-01, T-145: name, handler, dependencies, retry limit, retryable, config, description."""
    order = hf.flow("order", namespace="shop", version="2.0", description="from payment to parcel")
    order.step(name="a")(nothing)
    order.step(name="b", retry=7, retryable=False, config={"url": "x"}, description="says b")(nothing)
    order.step(name="c", after=["a", "b"], skippable=True)(nothing)
    order.step(name="d", each="c")(one)

    drain(hf)

    assert db.execute(f"{TEMPLATES} from flow.step_templates where version = '2.0' order by place").fetchall() == [
        ("a", "shop.order.a", [], 3, True, False, None, None),
        ("b", "shop.order.b", [], 7, False, False, {"url": "x"}, "says b"),
        ("c", "shop.order.c", ["a", "b"], 3, True, True, None, None),
        ("d", "shop.order.d:each", ["c"], 3, True, False, None, None),
    ]


def test_a_second_worker_that_says_the_same_changes_nothing(hf: Holdfast, order: Flow, db: DB) -> None:
    """T-145."""
    drain(hf)
    row = "select xmin::text, defined_at from flow.definitions"
    before = db.execute(row).fetchall()

    drain(hf)

    assert len(before) == 1
    assert db.execute(row).fetchall() == before


def test_a_step_is_a_function_that_can_be_called(hf: Holdfast) -> None:
    """T-84: with its condition or its context apart, and no database."""
    order = hf.flow("order")

    @order.step(when=lambda: False, config={"rate": 2})
    def charge(ctx: Ctx, amount: int, config: dict[str, int]) -> int:
        return amount * config["rate"]

    assert charge(None, 3, {"rate": 5}) == 15  # type: ignore[arg-type]

"""Flows as YAML: the same flows as Python's."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.errors import BadDefinition, InputRefused
from holdfast.flow.yaml import document
from holdfast.testing import drain
from kernel.steps import value

pytestmark = pytest.mark.one_server

DB = Connection[Any]
NOWHERE = "postgresql:///none"  # nothing is connected before the first use
ORDER = """
name: order
namespace: shop
version: "1.10"
description: from payment to parcel
context:
  type: object
  properties:
    order_id: {type: integer, minimum: 1}
    card: {type: string, pattern: "^[0-9]+$"}
    to: {type: object, properties: {zip: {type: string}}, required: [zip]}
  required: [order_id]
  additionalProperties: false
backoff: {default_backoff_seconds: [0.5, 1], jitter_enabled: false, reenqueue_delays: {processing: 5}}
steps:
  - name: close
    handler: flow.yaml_handlers:close
    after: [ship, approve, bill]
  - {name: reserve, handler: "flow.yaml_handlers:reserve", retry: 5, description: takes them from the shelf}
  - name: charge
    handler: flow.yaml_handlers:charge
    config: &bank {url: bank.test}
    timeout: 30s
    lease: 60
    priority: 7
  - {name: approve, handler: "flow.yaml_handlers:approve", after: reserve, when: "flow.yaml_handlers:is_large"}
  - {name: ship, handler: "flow.yaml_handlers:ship", each: reserve}
  - {name: bill, handler: "flow.yaml_handlers:bill", flow: billing.yaml, after: [charge]}
environments:
  staging:
    backoff: {jitter_enabled: null, buffer_seconds: 1}
    steps:
      charge: {config: {<<: *bank, tries: 3}, queue: slow}
      reserve: {retry: 1}
  production:
"""
BILLING = """
name: billing
steps:
  - {name: draw, handler: "flow.yaml_handlers:draw"}
"""
SMALL = """
name: small
version: '1'
steps:
  - name: first
    config: {a: 1}
    retry: 2
  - name: second
    after: [first]
"""


def nothing() -> None: ...


HANDLERS = {"first": nothing, "second": nothing}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "order.yaml").write_text(ORDER, "utf-8")
    (tmp_path / "billing.yaml").write_text(BILLING, "utf-8")
    return tmp_path


def test_a_document_makes_the_flow_that_it_tells_of(hf: Holdfast, folder: Path, db: DB) -> None:
    """T-01, T-16, T-145: steps in any order, a map, a condition, a sub-flow, a config that its function types."""
    order = hf.flow_from(folder / "order.yaml")

    run = order.start(order_id=7)
    drain(hf)

    assert run.result(1)["close"] == [["7-a of 7", "7-b of 7"], None, {"draw": "bill: 7 at bank.test"}]
    assert value(db, "select input - 'context' from holdfast.runs") == {"namespace": "shop", "version": "1.10"}
    handler = hf._engine.registry.find("shop.order.charge")
    assert handler is not None
    assert [str(handler.timeout), str(handler.lease)] == ["0:00:30", "0:01:00"]
    assert (
        value(db, "select waits from holdfast.policies where policy = 'flow:shop.order.reserve'")[0].total_seconds()
        == 0.5
    )
    said = db.execute(
        "select retry_limit, description from flow.step_templates where flow = 'order' and name = 'reserve'"
    ).fetchall()
    assert said == [(5, "takes them from the shelf")]
    assert (
        value(db, "select context_schema ->> 'required' from flow.definitions where name = 'order'") == '["order_id"]'
    )


def test_an_environment_overrides_by_name(folder: Path) -> None:
    """T-145: names are merged, all else is replaced, null takes a name away."""
    hf = Holdfast(NOWHERE)
    order = hf.flow_from(str(folder / "order.yaml"), environment="staging")

    steps = {step["name"]: step for step in order.plan}
    assert steps["charge"]["config"] == {"url": "bank.test", "tries": 3}
    assert (steps["charge"]["queue"], steps["charge"]["priority"], steps["reserve"]["retry_limit"]) == ("slow", 7, 1)
    assert steps["ship"]["queue"] == "default"


def test_an_environment_with_nothing_of_its_own_changes_nothing(folder: Path) -> None:
    plain, other = Holdfast(NOWHERE), Holdfast(NOWHERE)

    assert (
        plain.flow_from(folder / "order.yaml").plan
        == other.flow_from(folder / "order.yaml", environment="production").plan
    )


def test_merging_goes_down_by_names() -> None:
    into = {"a": {"b": 1, "c": [1, 2]}, "d": 1}

    assert document.merged(into, {"a": {"c": [3], "e": None}, "d": None}) == {"a": {"b": 1, "c": [3]}}
    assert into == {"a": {"b": 1, "c": [1, 2]}, "d": 1}


def test_a_mapping_and_functions_of_ones_own_do_too(hf: Holdfast) -> None:
    """T-01."""
    values = {"name": "greet", "steps": [{"name": "hello", "handler": "say", "config": {"to": "you"}}]}
    greet = hf.flow_from(values, handlers={"say": lambda config: f"hello {config['to']}"})

    run = greet.start()
    drain(hf)

    assert run.result(1) == {"hello": "hello you"}


def test_a_document_that_two_flows_have_inside_them_is_one_flow(folder: Path) -> None:
    hf = Holdfast(NOWHERE)
    other = ORDER.replace("name: order", "name: reorder", 1)
    (folder / "reorder.yaml").write_text(other, "utf-8")

    hf.flow_from(folder / "order.yaml")
    hf.flow_from(folder / "reorder.yaml")

    assert hf.flow_from(folder / "billing.yaml") is hf.flows.find("billing")
    assert len(list(hf.flows)) == 3


def test_documents_that_stand_inside_each_other_are_refused(folder: Path) -> None:
    """T-23."""
    hf = Holdfast(NOWHERE)
    (folder / "billing.yaml").write_text(BILLING.replace("}", ", flow: order.yaml}"), "utf-8")

    with pytest.raises(BadDefinition, match=r"order\.yaml .*billing\.yaml .*order\.yaml"):
        hf.flow_from(folder / "order.yaml")
    assert list(hf.flows) == []


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({}, "order_id: .*missing"),
        ({"order_id": "hunter2"}, 'order_id: .*"integer"'),
        ({"order_id": 0}, "order_id: .*minimum 1"),
        ({"order_id": 1, "card": "hunter2"}, r'card: .*pattern "\^\[0-9\]\+\$"'),
        ({"order_id": 1, "to": {"zip": 5}}, r'to\.zip: .*"string"'),
        ({"order_id": 1, "to": {}}, r"to\.zip: .*missing"),
        ({"order_id": 1, "zip": "hunter2"}, "zip: .*known"),
        ({"order_id": {1}}, "context .*JSON"),
    ],
)
def test_a_context_that_the_schema_refuses_starts_nothing(
    hf: Holdfast, folder: Path, db: DB, context: dict[str, Any], said: str
) -> None:
    """T-16, T-18: the field is named, and no value is told."""
    order = hf.flow_from(folder / "order.yaml")

    with pytest.raises(InputRefused, match=said) as refused:
        order.start(**context)
    assert "hunter2" not in str(refused.value)
    assert "order_id, card, to" in str(refused.value)
    assert value(db, "select count(*) from holdfast.runs") == 0


def test_an_environment_that_is_not_listed_is_refused(folder: Path) -> None:
    hf = Holdfast(NOWHERE)
    with pytest.raises(BadDefinition, match=r"stagin .*staging, production"):
        hf.flow_from(folder / "order.yaml", environment="stagin")
    assert hf.flow_from(SMALL, handlers=HANDLERS, environment="staging").title.name == "small"


def test_a_config_that_its_function_does_not_take_is_refused(folder: Path) -> None:
    """T-145: as the function types it."""
    hf = Holdfast(NOWHERE)
    text = ORDER.replace("{url: bank.test}", "{tries: many}")
    (folder / "order.yaml").write_text(text, "utf-8")

    with pytest.raises(BadDefinition, match=r"charge .*url: .*tries: "):
        hf.flow_from(folder / "order.yaml")


def test_a_parameter_that_the_schema_does_not_know_is_refused() -> None:
    """T-16."""
    hf = Holdfast(NOWHERE)
    text = SMALL.replace("version: '1'", "context: {type: object, properties: {order_id: {}}}")

    with pytest.raises(BadDefinition, match=r"ordr_id.*: order_id"):
        hf.flow_from(text, handlers={**HANDLERS, "first": lambda ordr_id: ordr_id})


def test_a_context_by_json_schema_is_for_flows_in_python_too(hf: Holdfast) -> None:
    """T-16."""
    order = hf.flow("order", context={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})

    @order.step
    def look(n: int) -> int:
        return n

    with pytest.raises(InputRefused, match="n: "):
        order.start()
    run = order.start({"n": 3})
    drain(hf)
    assert run.result_of(look) == 3


def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hf = Holdfast(NOWHERE)
    real = builtins.__import__

    def imports(name: str, *given: Any, **more: Any) -> Any:
        if name == "holdfast.flow.yaml.load":
            raise ModuleNotFoundError("No module named 'yaml'", name="yaml")
        return real(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", imports)
    with pytest.raises(BadDefinition, match=r"yaml.*holdfast-pg\[yaml\]"):
        hf.flow_from(SMALL)

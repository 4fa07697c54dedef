"""Steps of flows that share calls: in one run and across runs, by a field of the context or of a map's item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from typing_extensions import TypedDict

from holdfast import Batch, Fail, Holdfast
from holdfast.errors import BadDefinition
from holdfast.testing import drain, run_flow
from kernel.steps import DB

pytestmark = pytest.mark.one_server


class Load(TypedDict):
    shop: str
    n: int


class Push(TypedDict):
    shop: str
    load: int  # the result of the step before


def test_steps_of_several_runs_share_calls_by_a_field_of_the_context(hf: Holdfast) -> None:
    sizes: dict[str | None, list[int]] = {}
    flow = hf.flow("prices")

    @flow.step(batch=10, by="shop")
    def load(batch: Batch, items: list[Load]) -> list[int]:
        sizes.setdefault(batch.key, []).append(len(items))
        return [item["n"] * 10 for item in items]

    @flow.step(after=load, batch=10, by="shop")
    def push(items: list[Push]) -> list[str]:
        return [f"{item['shop']}: {item['load']}" for item in items]

    @flow.step(after=push)
    def thank(push: str) -> str:
        return push.upper()

    runs = [flow.start(shop="ab"[n % 2], n=n) for n in range(5)]
    drain(hf)

    assert sizes == {"a": [3], "b": [2]}
    assert [run.result_of(thank) for run in runs] == ["A: 0", "B: 10", "A: 20", "B: 30", "A: 40"]


@dataclass
class Piece:
    item: int
    shop: str


def test_the_items_of_a_map_share_calls(hf: Holdfast, db: DB) -> None:
    calls: list[list[Piece]] = []
    flow = hf.flow("pieces")

    @flow.step
    def split(count: int) -> list[int]:
        return list(range(count))

    @flow.step(each=split, batch=4)
    async def send(pieces: list[Piece]) -> list[Any]:
        calls.append(pieces)
        return [Fail("odd") if piece.item == 2 else piece.item for piece in pieces]

    played = run_flow(hf, flow, count=5, shop="acme")

    assert sorted(map(len, calls)) == [1, 4]
    assert played.state == "error"
    states = db.execute("select state from holdfast.steps where kind = 'pieces.send' order by id").fetchall()
    assert [state for (state,) in states] == ["complete", "complete", "error", "complete", "complete"]


class Word(TypedDict):
    item: str


def test_the_items_of_a_map_share_calls_by_their_value(hf: Holdfast) -> None:
    calls: list[tuple[str | None, int]] = []
    flow = hf.flow("words")

    @flow.step
    def split(text: str) -> list[str]:
        return text.split()

    @flow.step(each=split, batch=10, by="item")
    def send(batch: Batch, words: list[Word]) -> list[str]:
        assert {word["item"] for word in words} == {batch.key}
        calls.append((batch.key, len(words)))
        return [word["item"].upper() for word in words]

    @flow.step(after=send)
    def join(send: list[str]) -> str:
        return " ".join(send)

    played = run_flow(hf, flow, text="a b a c b a")

    assert sorted(calls, key=str) == [("a", 3), ("b", 2), ("c", 1)]
    assert played.result_of(join) == "A B A C B A"


def test_a_plain_start_in_sql_and_yaml_get_the_same_keys(hf: Holdfast, db: DB) -> None:
    def push(items: list[Push]) -> list[int]:
        return [len(items)] * len(items)

    flow = hf.flow_from(
        """
        name: prices
        steps:
          - name: load
            handler: load
          - name: push
            handler: push
            after: [load]
            batch: 10
            by: shop
            batch_wait: 100ms
        """,
        handlers={"load": lambda: 1, "push": push},
    )
    run = flow.start(shop="a")
    hf._engine.executor.make(flow.definition())
    db.execute("select flow.start_task('prices', '{\"shop\": \"a\"}')")
    drain(hf)

    assert run.result_of("push") in {1, 2}  # with the other run, if both loads ended together
    keys = db.execute("select distinct batch_key from holdfast.steps where kind = 'prices.push'").fetchall()
    assert keys == [("a",)]


def test_handlers_of_two_versions_do_not_share_a_call(hf: Holdfast) -> None:
    seen: list[tuple[str, int]] = []

    def define(version: str) -> Any:
        flow = hf.flow("prices", version=version)

        @flow.step(batch=10)
        def push(items: list[Push]) -> list[int]:
            seen.append((version, len(items)))
            return [0] * len(items)

        return flow

    for flow in (define("1.0.0"), define("2.0.0")):
        for _ in range(2):
            flow.start(shop="a", load=1)
    drain(hf)

    assert sorted(seen) == [("1.0.0", 2), ("2.0.0", 2)]


def test_bad_batch_steps_are_refused(hf: Holdfast) -> None:
    flow = hf.flow("odd")

    @flow.step
    def load() -> int:
        return 1

    def push(items: list[Push]) -> list[int]:
        return []

    def anything(items: list[dict[str, Any]]) -> list[int]:
        return []

    for function, options, where in (
        (push, {"by": "load"}, "by"),  # known only after its parent
        (push, {"when": bool}, "batch"),
        (anything, {}, "batch"),
        (push, {"batch": 0}, "batch"),
    ):
        with pytest.raises(BadDefinition) as refused:
            flow.step(**{"after": load, "batch": 5, **options})(function)  # type: ignore[call-overload]
        assert refused.value.where == where
        assert refused.value.next

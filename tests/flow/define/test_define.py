"""What cannot work is refused where it is written down, in words that name it; and nothing of it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.errors import BadDefinition, BadInput
from holdfast.flow import calls, graph
from holdfast.flow.define import Flow
from holdfast.models import Json
from holdfast.testing import drain
from kernel.steps import value
from worker.running import worker_of

DB = Connection[Any]


def nothing() -> None: ...


def one(item: str) -> None: ...


def several() -> Iterator[int]:
    yield 1


async def asks() -> bool:
    return True


@pytest.fixture
def order(hf: Holdfast) -> Flow:
    """A flow with one step, called first."""
    flow = hf.flow("order")
    flow.step(name="first")(nothing)
    return flow


@pytest.mark.parametrize(
    ("waits", "circle"),
    [
        ({"a": ["b"], "b": ["a"]}, "a → b → a|b → a → b"),
        ({"a": ["e"], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["d"]}, "(. → ){5}."),
    ],
    ids=["of two", "of five"],
)
def test_a_cycle_is_refused_and_shown(waits: graph.Waits, circle: str) -> None:
    """T-23, C-56."""
    with pytest.raises(BadDefinition, match=f": ({circle})"):
        graph.order("order", waits)


def test_the_database_refuses_a_cycle_too(hf: Holdfast, db: DB) -> None:
    """T-18, T-23: whoever starts it, and nothing is stored."""
    plan = Json('[{"name": "a", "kind": "k", "after": ["b"]}, {"name": "b", "kind": "k", "after": ["a"]}]')

    with pytest.raises(Exception, match=r"each other|cycle"):
        hf._engine.make(calls.initialize_task("order", plan, Json("{}")))
    assert value(db, "select count(*) from holdfast.runs") == value(db, "select count(*) from holdfast.steps") == 0


REFUSED: dict[str, tuple[Callable[[Flow], Any], str]] = {
    "itself": (lambda f: f.step(name="a", after="a")(nothing), "a .*itself"),
    "each of itself": (lambda f: f.step(name="a", each="a")(one), "itself; .*`each`"),
    "unknown parent": (lambda f: f.step(name="a", after="b")(nothing), "b, .*first, a"),
    "name twice": (lambda f: f.step(name="first")(nothing), "order .*first"),
    "no identifier": (lambda f: f.step(name="to-day")(nothing), "'to-day' .*order"),
    "a keyword": (lambda f: f.step(name="class")(nothing), "'class'"),
    "another form": (lambda f: f.step(name="gro\u0308sse")(nothing), "'grösse'"),
    "no name": (lambda f: f.step()(lambda: None), "'<lambda>'"),
    "item": (lambda f: f.step(name="item")(nothing), "called item"),
    "config": (lambda f: f.step(name="config")(nothing), "called config"),
    "ours": (lambda f: f.step(name="holdfast_plan")(nothing), "holdfast_plan"),
    "option": (lambda f: f.step(name="a", quue="mail")(nothing), "quue; .*queue"),
    "an odd option": (lambda f: f.step(name="a", zzz=1)(nothing), "zzz; .*retry, "),
    "negative retry": (lambda f: f.step(name="a", retry=-1)(nothing), "a: .*-1"),
    "no number": (lambda f: f.step(name="a", retry="3")(nothing), "a: .*'3'"),
    "a switch": (lambda f: f.step(name="a", retry=True)(nothing), "a: .*True"),
    "priority": (lambda f: f.step(name="a", priority=10)(nothing), "priority .*10"),
    "queue": (lambda f: f.step(name="a", queue="")(nothing), "a: .*''"),
    "timeout": (lambda f: f.step(name="a", timeout=0)(nothing), "timeout .*0"),
    "config is a list": (lambda f: f.step(name="a", config=[1])(nothing), "a: .*config .*list"),
    "config is no JSON": (lambda f: f.step(name="a", config={"a": {1}})(nothing), "config .*JSON"),
    "a generator": (lambda f: f.step(name="a")(several), "generator, got several"),
    "positional": (lambda f: f.step(name="a")(lambda x, /: x), "x .*positional"),
    "positional, with when": (
        lambda f: f.step(name="a", when=lambda: True)(lambda x, /: x), "x .*positional",
    ),
    "any arguments": (lambda f: f.step(name="a")(lambda *x: x), "x .*any number"),
    "any names": (lambda f: f.step(name="a")(lambda **x: x), "x .*any names"),
    "async when": (lambda f: f.step(name="a", when=asks)(nothing), "a: `when`"),
    "when of any": (lambda f: f.step(name="a", when=lambda **x: x)(nothing), "x .*any names"),
    "async cpu": (lambda f: f.step(name="a", cpu=True)(asks), "async handler"),
    "local cpu": (lambda f: f.step(name="a", cpu=True)(lambda: None), "of a module"),
    "no item": (lambda f: f.step(name="a", each="first")(nothing), "called item"),
    "no item of a sub-flow": (lambda f: f.subflow(f, name="a", each="first")(nothing), "called item"),
    "our parameter": (lambda f: f.step(name="a")(lambda holdfast_plan: holdfast_plan), "holdfast_plan"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_step_that_cannot_work_is_refused_and_nothing_of_it_is_kept(case: str) -> None:
    """T-01, T-17, T-22, T-23, C-51, C-56."""
    define, said = REFUSED[case]
    hf = Holdfast("postgresql:///none")  # nothing is connected before the first use
    order = hf.flow("order")
    order.step(name="first")(nothing)
    if case == "no item of a sub-flow":
        inner = hf.flow("inner")
        inner.step(name="first")(nothing)
        define = lambda f: f.subflow(inner, name="a", each="first")(nothing)  # noqa: E731

    with pytest.raises(BadDefinition, match=said):
        define(order)

    assert [kind for kind in hf._engine.registry.kinds() if kind.startswith("order")] == ["order.first"]
    assert list(order.nodes) == ["first"]
    assert [step["name"] for step in order.plan] == ["first"]


def test_names_may_have_letters_of_any_script(hf: Holdfast, db: DB) -> None:
    """T-145: a parent's result goes by its name, and SQL shows it"""
    flow = hf.flow("größen", namespace="naïve")

    @flow.step
    def größe(länge: int) -> int:  # noqa: PLC2401
        return 2 * länge

    @flow.step(after="größe")
    def 合計(größe: int) -> int:  # noqa: N802, PLC2401
        return größe + 1

    run = flow.start(länge=20)
    drain(hf)

    assert run.result() == {"größe": 40, "合計": 41}
    assert db.execute("select name, handler from flow.steps order by step_id").fetchall() == [
        ("größe", "naïve.größen.größe"),
        ("合計", "naïve.größen.合計"),
    ]


def test_no_executions_count_as_one(hf: Holdfast, db: DB) -> None:
    """C-51: what is planned is tried."""
    order = hf.flow("order")

    @order.step(retry=0)
    def fails() -> None:
        raise ValueError("no")

    run = order.start()
    drain(hf)

    assert [(step.state, step.outcome) for step in run.steps()] == [("error", "failed")]
    assert value(db, "select attempt from holdfast.steps") == 1


def test_a_flow_without_steps_is_refused_at_its_start_by_a_worker_and_as_a_part_of_another(
    hf: Holdfast, order: Flow, db: DB
) -> None:
    """T-23, C-57: and nothing is stored."""
    empty = hf.flow("empty")
    said = "empty .*steps"

    with pytest.raises(BadDefinition, match=said):
        empty.start()
    with pytest.raises(BadDefinition, match=said):
        order.subflow(empty)(nothing)
    with pytest.raises(BadDefinition, match=said):
        worker_of(hf)
    with pytest.raises(BadInput, match=said):
        hf._engine.make(calls.initialize_task("empty", Json("[]"), Json("{}")))
    with pytest.raises(BadInput, match=said):
        hf._engine.make(calls.define_flow("empty", [], namespace="default", version="1"))
    assert value(db, "select count(*) from holdfast.runs") == 0
    assert value(db, "select count(*) from flow.definitions") == 0


def test_a_step_that_comes_after_the_first_use_is_refused(hf: Holdfast, order: Flow) -> None:
    """T-23: its runs would have it, and those before would not."""
    order.start()

    with pytest.raises(BadDefinition, match=r"order .*late"):
        order.step(name="late")(nothing)
    assert hf._engine.registry.kinds() == ["order.first"]

"""Flows that tell what was done: each execution is written down, and its result says which one it was."""

from __future__ import annotations

from collections import Counter
from typing import Any

from psycopg import Connection

from holdfast import Fail, Holdfast
from holdfast.flow.define import Flow
from holdfast.flow.handle import FlowRun

JOURNAL = """
select coalesce(n.name, 'the task'), j.event, j.actor_kind, j.reason
  from holdfast.journal j left join holdfast.run_steps n on n.run_id = j.run_id and n.step_id = j.step_id
 where j.run_id = %s order by j.id
"""


class Told:
    """What was executed, in order; who is named in `failing` fails for good."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.failing: set[str] = set()
        self._times: Counter[str] = Counter()

    def run(self, name: str) -> str:
        """Write an execution down, and give a result that no other has."""
        self._times[name] += 1
        self.done.append(name)
        if name in self.failing:
            raise Fail(f"{name} fails")
        return f"{name}{self._times[name]}"

    def taken(self) -> list[str]:
        """Give what was executed since the last look, in order of name."""
        found, self.done = sorted(self.done), []
        return found


def diamond(hf: Holdfast, told: Told) -> Flow:
    """Make a flow in which left and right wait for top, and join for both."""
    flow = hf.flow("diamond")

    @flow.step
    def top() -> str:
        return told.run("top")

    @flow.step(after=top)
    def left(top: str) -> str:
        return f"{told.run('left')}({top})"

    @flow.step(after=top)
    def right(top: str) -> str:
        return f"{told.run('right')}({top})"

    @flow.step(after=[left, right])
    def join(left: str, right: str) -> str:
        return f"{told.run('join')}({left} {right})"

    return flow


def mapped(hf: Holdfast, told: Told) -> Flow:
    """Make a flow that maps over a list of three, and a step that joins them."""
    flow = hf.flow("mapped")

    @flow.step
    def items() -> list[str]:
        made = told.run("items")
        return [f"{made}.{n}" for n in range(3)]

    @flow.step(each=items)
    def ship(item: str) -> str:
        return told.run(f"ship {item[-1]}") + f"({item})"

    @flow.step(after=ship)
    def report(ship: list[str]) -> list[str]:
        told.run("report")
        return ship

    return flow


def nested(hf: Holdfast, told: Told) -> Flow:
    """Make a flow with a step that is a flow of its own."""
    billing = hf.flow("billing")

    @billing.step
    def draw(order: str) -> str:
        return f"{told.run('draw')}({order})"

    @billing.step(after=draw)
    def send(draw: str) -> str:
        return f"{told.run('send')}({draw})"

    flow = hf.flow("nested")

    @flow.step
    def order() -> str:
        return told.run("order")

    @flow.subflow(billing, after=order)
    def bill(order: str) -> dict[str, str]:
        told.run("bill")
        return {"order": order}

    @flow.step(after=bill)
    def close(bill: dict[str, Any]) -> str:
        return f"{told.run('close')}({bill['send']})"

    return flow


def states(run: FlowRun) -> dict[str, str]:
    """Give the state of each step, by name."""
    return {step.name: step.state for step in run.steps()}


def step_id(run: FlowRun, name: str) -> str:
    """Give the number of a step, as people type it."""
    return next(str(step.step_id) for step in run.steps() if step.name == name)


def moves_by_hand(db: Connection[Any], run: FlowRun) -> list[tuple[str, str, str, str | None]]:
    """Read what people did to a task and its steps: which, what, as whom, why."""
    return [row for row in db.execute(JOURNAL, [run.id]).fetchall() if row[2] in {"user", "api"}]

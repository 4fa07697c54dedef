"""The real flow beside the model: each call is made on the database, foretold by the model, and compared.

Workers here have no process: they claim, complete, execute and settle by the very parts that a worker has, in the order
that an example says, so that each of them can die or come too late at any place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import Connection
from psycopg.rows import namedtuple_row

from flow.model import Model, Refused
from flow.parts import DONE, Fate, Node, Step, Task
from holdfast import Ctx, Fail, Holdfast, Retry, Snooze, failpoints
from holdfast.connections.handler_tx import HandlerExecutor
from holdfast.errors import RefusedError
from holdfast.flow import calls as flow_calls
from holdfast.flow.define import Flow
from holdfast.flow.wrappers import parameter, shaped
from holdfast.handlers import inputs
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import Json, Outcome, Release, Settlement
from holdfast.testing import Clock
from holdfast.worker.attempt import Attempt, Claim, lease_clock
from holdfast.worker.execute import run_handler
from properties.database import wipe

LEASE = timedelta(seconds=30)
ROWS = """
select s.run_id, n.name, s.state, s.due_at, s.attempt, s.failures, s.cursor, s.result, s.error ->> 'type',
       s.finished_at is not null
  from holdfast.steps s join holdfast.run_steps n on n.run_id = s.run_id and n.step_id = s.id
"""
READY = """
select b.task_id, b.name, b.dependencies_satisfied, b.ready_for_execution, b.attempts, b.next_retry_at, b.total_parents,
       b.completed_parents, b.processed, b.in_process
  from flow.get_step_readiness_status_batch(%s) b
"""
STATUS = "select c.task_id, c.state, c.execution_status from flow.get_task_execution_context_batch(%s) c"
# Where the question of a settle and that of a reader disagree about a task.
DISAGREE = """
select to_jsonb(c) from flow.get_task_execution_context_batch(%s) c
except
select to_jsonb(t) - 'at' - 'steps' - 'moves' from flow.settled_tasks('w', array(select s.id from holdfast.steps s)) t
"""
IDS = "select n.name, n.step_id from holdfast.run_steps n where n.run_id = %s"


class Held(NamedTuple):
    """A step that a worker claimed, and may have lost by now; what its function is to be called with."""

    step: Step
    one: Attempt
    given: dict[str, Any]


class Stage:
    """One cloned database, wiped before each example."""

    def __init__(self, dsn: str) -> None:
        self._stack = ExitStack()
        self.db: Connection[Any] = self._stack.enter_context(psycopg.connect(dsn, autocommit=True))
        self._executor = HandlerExecutor(dsn, "stage", None, timedelta(seconds=30))
        self._stack.callback(self._executor.close)
        self._clock = Clock(self.db)
        self._dsn = dsn

    def close(self) -> None:
        self._stack.close()

    def wipe(self) -> None:
        wipe(self.db)

    def begin(self, nodes: tuple[Node, ...]) -> None:
        """Empty the database, define the flow and start a task of it."""
        self.wipe()
        self.model = Model(self._clock.set(self._clock.now().replace(microsecond=0)))
        self.held: list[Held] = []
        self._workers = 0
        self._called: dict[str, Any] | None = None
        self._fate = Fate()
        hf = Holdfast(self._dsn)
        flow = self._flow(hf, "f", nodes)
        self._registry = hf._engine.registry
        for definition in hf._engine.registry.definitions():
            run(self.db, definition)
        self._nodes, self._plan = nodes, flow.written_plan
        self.start()

    def start(self) -> None:
        """Start a task of the flow."""
        (task_id,) = run(self.db, flow_calls.initialize_task("f", self._plan, Json("{}")))
        self._know(self.model.start(task_id, self._nodes))

    def _flow(self, hf: Holdfast, name: str, nodes: Sequence[Node], *context: str) -> Flow:
        flow = hf.flow(name)
        for node in nodes:
            item = ("item",) if node.each else ()
            function = self._function(node, *node.after, *item, *context)
            options = {"name": node.name, "after": node.after, "retry": node.limit, "retryable": node.retryable}
            add = flow.step(**options, each=node.each)
            if node.inner:
                inner = self._flow(hf, f"{name}_{node.name}", node.inner, "seed")
                add = flow.subflow(inner, **options, each=node.each)
            add(function)
        return flow

    def _function(self, node: Node, *names: str) -> Callable[..., Any]:
        def play(**given: Any) -> Any:
            ctx: Ctx = given.pop("ctx")
            self._called = given
            self._happen()
            if node.inner:
                return {"seed": f"{ctx.step_id}.{ctx.attempt}"}
            return [f"{ctx.step_id}.{ctx.attempt}.{n}" for n in range(node.gives)]

        made: Callable[..., Any] = shaped(play, play, [parameter("ctx", Ctx), *map(parameter, names)], Any)
        return made

    def _happen(self) -> None:
        match self._fate:
            case Fate("retry", after):
                raise Retry({"type": "Boom"}, after)
            case Fate("raises"):
                raise Boom
            case Fate("fail"):
                raise Fail({"type": "Boom"})
            case Fate("snooze", after):
                raise Snooze(after or timedelta(0))

    # What workers do.

    def claim(self, batch: int) -> list[Held]:
        """Let a worker of its own claim: exactly what is ready, what has been due for the longest first."""
        self._workers += 1
        ready = sorted(step.due for step in self.model.ready())
        kinds = self._registry.kinds()
        worker = f"worker {self._workers}"
        steps = run(self.db, calls.claim_steps(worker, "default", kinds, batch=batch, lease=LEASE, keeps_json=True))
        by_id = {step.id: step for step in self.model.steps()}
        claimed = [by_id[step.step_id] for step in steps]
        assert all(step in self.model.ready() for step in claimed), "it is not ready, or not any more"
        assert sorted(step.due for step in claimed) == ready[:batch]
        asked = inputs.queries(steps, self._registry.versions)
        answers = {row.step_id: row for query in asked for row in run(self.db, query)}
        held = []
        for mine, step in zip(claimed, steps, strict=True):
            self.model.claim(mine, step.lease_id, self.model.now + LEASE)
            versions = self._registry.versions(step.kind)
            answer = answers.get(step.step_id)
            full, handler = inputs.complete(step, answer, versions) if answer else (step, versions[-1])
            one = Attempt(full, handler, self._executor, LEASE.total_seconds(), Claim(1, lease_clock()))
            held.append(Held(mine, one, mine.given()))
        self.held += held
        return held

    def execute(self, held: Held, fate: Fate) -> Outcome | None:
        """Run the handler, and say what it came to if that is still to be settled."""
        if fate.what == "silent":
            return None
        if fate.what == "release":
            return Release()
        self._fate, self._called = fate, None
        place = {"dies": "before_commit:raise", "unheard": "after_commit:raise"}.get(fate.what, "")
        with armed(place):
            outcome = run_handler(held.one)
        if self._called is not None:
            assert self._called == held.given, f"{held.step.name} was called with {self._called}"
        settled_itself = held.one.settled is not None or (fate.what == "unheard" and self._has_expanded(held))
        if settled_itself:
            self._report(held, fate)
        return None if fate.what == "dies" else outcome

    def settle(self, said: list[tuple[Held, Fate, Outcome]]) -> None:
        """Settle outcomes in one call; what was settled before, or is lost, is left out of the answer."""
        settlements = [Settlement(h.step.id, h.one.step.lease_id, outcome) for h, _, outcome in said]
        expected = {h.step.id for h, _, _ in said if h.step.lease == h.one.step.lease_id}
        settled = {row.step_id for row in run(self.db, calls.settle_steps(settlements))}
        assert settled == expected
        for held, fate, _ in said:
            self._report(held, fate)
        if any(fate.what == "unheard" for _, fate, _ in said):  # whoever did not hear the answer says it again
            assert run(self.db, calls.settle_steps(settlements)) == []

    def _report(self, held: Held, fate: Fate) -> None:
        self.model.report(held.step, held.one.step.lease_id, fate)
        if held in self.held:
            self.held.remove(held)
        self._know(next(task for task in self.model.tasks if held.step in task.steps.values()))

    def _has_expanded(self, held: Held) -> bool:
        query = "select 1 from holdfast.journal j where j.lease_id = %s and j.event = 'continued'"
        return self.db.execute(query, [held.one.step.lease_id]).fetchone() is not None

    def rescue(self) -> None:
        run(self.db, calls.rescue_steps(batch=100))
        self.model.rescue()

    def wait_until(self, moment: datetime) -> None:
        self.model.now = max(moment, self.model.now)
        self._clock.set(self.model.now)

    # What people do.

    def agree(self, call: Call[Any], foretold: Callable[[Any], Any]) -> None:
        """Make a call, and let the model say whether it is refused."""
        try:
            (answer,) = run(self.db, call)
        except RefusedError:
            with pytest.raises(Refused):
                foretold(None)
        else:
            made = foretold(answer)
            if isinstance(made, Task):
                self._know(made)

    # What is compared.

    def check(self) -> None:
        """Each step and each task is as the model says, and so is what is ready."""
        ids = [task.id for task in self.model.tasks]
        pairs = [(task, step) for task in self.model.tasks for step in task.steps.values()]
        with self.db.pipeline():  # one trip
            rows, ready, status = self.db.execute(ROWS), self.db.execute(READY, [ids]), self.db.execute(STATUS, [ids])
            disagree = self.db.execute(DISAGREE, [ids])
        assert {row[:2]: row[2:] for row in rows} == {(task.id, step.name): told(step) for task, step in pairs}
        foretold = {(task.id, step.name): self._readiness(task, step) for task, step in pairs}
        assert {row[:2]: row[2:] for row in ready} == foretold
        states = {task.id: (task.state, task.status(self.model.now)) for task in self.model.tasks}
        assert {row[0]: row[1:] for row in status} == states
        assert disagree.fetchall() == []

    def _readiness(self, task: Task, step: Step) -> tuple[Any, ...]:
        is_ready = not task.is_over and step.due_at is not None and step.due_at <= self.model.now
        next_retry = step.due_at if step.state == "error" else None
        done = sum(parent.state in DONE for parent in step.parents)
        counts = (step.failures, next_retry, len(step.parents), done)
        return (step.may_begin, is_ready, *counts, step.state in DONE, step.lease is not None)

    def violations(self) -> list[Any]:
        with self.db.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute("select * from holdfast.violations()").fetchall()

    def _know(self, task: Task) -> None:
        """Give the model the numbers of the steps that there are."""
        for name, number in self.db.execute(IDS, [task.id]):
            assert name in task.steps, f"{name} is not to be there"
            task.steps[name].id = number


class Boom(Exception):
    """What a handler raises."""


def told(step: Step) -> tuple[Any, ...]:
    """Write a step of the model down as its row."""
    return (
        step.state, step.due_at, step.executions, step.failures, step.cursor, step.result, step.error, step.is_over
    )  # fmt: skip


@contextmanager
def armed(place: str) -> Iterator[None]:
    """Let the worker die at a failpoint; here it raises, and nothing is heard of it any more."""
    before = failpoints._ARMED
    failpoints._ARMED = failpoints.armed(place)
    try:
        yield
    finally:
        failpoints._ARMED = before

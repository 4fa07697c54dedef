"""The face over the engine: typed rows, one predicate, one state machine, and what the endpoint counts."""

from __future__ import annotations

from dataclasses import asdict

from prometheus_client import generate_latest
from psycopg.rows import dict_row

from holdfast import Holdfast
from holdfast.flow import Backoff
from holdfast.flow.handle import FlowRun
from holdfast.testing import drain
from kernel.steps import DB, value
from worker.running import burst

AT_ONCE = Backoff(bypass=True)


def failing_once(hf: Holdfast) -> tuple[FlowRun, list[str]]:
    """A flow whose second step fails at first; and what was called."""
    order = hf.flow("order", backoff=AT_ONCE)
    called: list[str] = []

    @order.step
    def reserve() -> int:
        called.append("reserve")
        return 7

    @order.step(after=reserve)
    def charge(reserve: int) -> int:
        called.append("charge")
        if called.count("charge") == 1:
            raise ConnectionError("hung up")
        return reserve

    return order.start(), called


def test_python_gives_typed_rows_that_equal_those_of_sql(hf: Holdfast, db: DB) -> None:
    """T-85"""
    run, _ = failing_once(hf)
    with db.cursor(row_factory=dict_row) as cursor:
        ready = cursor.execute("select * from flow.get_step_readiness_status(%s)", [run.id]).fetchall()
        stands = cursor.execute("select * from flow.get_task_execution_context(%s)", [run.id]).fetchall()

    assert [asdict(step) for step in run.readiness()] == ready
    assert [asdict(run.context())] == stands
    assert [step.name for step in run.readiness() if step.ready_for_execution] == ["reserve"]


def test_the_engine_does_without_the_functions_that_tell_readiness(hf: Holdfast, db: DB) -> None:
    """T-128, C-54, C-94: the claim asks the same predicate and not the function, so there is nothing to fall back to"""
    db.execute("drop function flow.get_step_readiness_status(uuid, bigint[])")
    db.execute("drop function flow.get_task_execution_context(uuid)")
    run, called = failing_once(hf)

    drain(hf)

    assert (run.status().state, called) == ("complete", ["reserve", "charge", "charge"])


def test_the_loop_follows_the_predicate(hf: Holdfast, db: DB) -> None:
    """T-25, C-94: what it does not call due is neither ready nor executed, and the loop ends"""
    run, called = failing_once(hf)
    db.execute(
        """create or replace function holdfast.is_due(step holdfast.steps, clock timestamptz) returns boolean
           language sql immutable begin atomic select step.due_at <= clock and step.kind <> 'order.charge'; end"""
    )

    drain(hf)

    assert called == ["reserve"]
    assert [step.name for step in run.readiness() if step.ready_for_execution] == []


def test_one_component_has_the_states_and_moves_of_tasks_and_of_steps(db: DB) -> None:
    """T-04"""
    rows = db.execute("select machine, state from holdfast.machine_states where machine like 'flow.%'").fetchall()
    known = {"pending", "in_progress", "complete", "error", "cancelled", "resolved_manually"}

    assert {state for machine, state in rows if machine == "flow.task"} == known
    assert {state for machine, state in rows if machine == "flow.step"} == known
    assert value(db, "select count(distinct machine) from holdfast.machine_moves where machine like 'flow.%%'") == 2


def test_the_metrics_endpoint_counts_what_became_of_steps(hf: Holdfast) -> None:
    """T-90"""
    _, _ = failing_once(hf)

    worker = burst(hf)

    told = generate_latest(worker.meters.registry).decode()
    assert 'holdfast_settled_total{event="succeeded",kind="order.reserve"} 1.0' in told
    assert 'holdfast_settled_total{event="retried",kind="order.charge"} 1.0' in told

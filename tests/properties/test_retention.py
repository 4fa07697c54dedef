"""Retention against a model: random rules, ages, machines, queues, tenants and outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import Connection

from holdfast.kernel import calls, retention_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock, Template
from kernel.retention import sweep
from properties.database import wipe

pytestmark = pytest.mark.one_server

DB = Connection[Any]
DEFAULTS = {"succeeded": 30, "cancelled": 30, "failed": 90}
STATES = {  # of each machine, how it ends
    "work.task": {"succeeded": "done", "failed": "error", "cancelled": "cancelled"},
    "ops.run": {"succeeded": "success", "failed": "failed", "cancelled": "cancelled"},
    "flow.task": {"succeeded": "complete", "failed": "error", "cancelled": "cancelled"},
}
QUEUES, TENANTS = ("default", "bulk"), ("default", "acme")
DAYS = st.sampled_from([0, 1, 5, 29, 30, 31, 60, 89, 90, 91, 200])


@dataclass(frozen=True)
class Rule:
    days: int | None
    tenant: str
    machine: str | None
    queue: str | None
    outcome: str | None


@dataclass(frozen=True)
class Row:
    """A task or a run; without an outcome it is not over."""

    machine: str
    queue: str
    tenant: str
    outcome: str | None
    age: int

    @property
    def is_run(self) -> bool:
        return self.machine == "flow.task"


rules = st.builds(
    Rule,
    days=st.none() | DAYS,
    tenant=st.sampled_from(["*", *TENANTS]),
    machine=st.none() | st.sampled_from(sorted(STATES)),
    queue=st.none() | st.sampled_from(QUEUES),
    outcome=st.none() | st.sampled_from(sorted(DEFAULTS)),
).filter(lambda rule: rule.machine != "flow.task" or rule.queue is None)
rows = st.builds(
    Row,
    machine=st.sampled_from(sorted(STATES)),
    queue=st.sampled_from(QUEUES),
    tenant=st.sampled_from(TENANTS),
    outcome=st.none() | st.sampled_from(sorted(DEFAULTS)),
    age=DAYS,
)


def kept_days(row: Row, chosen: list[Rule]) -> int | None:
    """Tell for how many days a row is kept: by the most specific rule that was set, or by default."""
    where = (row.tenant, row.machine, None if row.is_run else row.queue, row.outcome)
    found: tuple[tuple[bool, ...], int | None] | None = None
    for rule in chosen:
        named = (None if rule.tenant == "*" else rule.tenant, rule.machine, rule.queue, rule.outcome)
        if all(want in {None, have} for want, have in zip(named, where, strict=True)):
            rank = tuple(want is not None for want in named)
            if found is None or rank >= found[0]:
                found = (rank, rule.days)
    return DEFAULTS[row.outcome or ""] if found is None else found[1]


def is_pruned(row: Row, chosen: list[Rule]) -> bool:
    if row.outcome is None:
        return False
    days = kept_days(row, chosen)
    return days is not None and row.age >= days


@pytest.fixture(scope="module")
def stage(template: Template) -> Iterator[DB]:
    with template.clone() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


STEP = """
insert into holdfast.steps (machine, state, kind, queue, tenant, created_at, finished_at, last_event, run_id, due_at)
values (%(machine)s, %(state)s, 'mail', %(queue)s, %(tenant)s, %(at)s, %(ended)s, %(event)s, %(run)s, %(due)s)
returning id
"""
RUN = """
insert into holdfast.runs (id, machine, name, state, tenant, total, live, created_at, finished_at)
values (holdfast.uuid7(), 'flow.task', 'r', %(state)s, %(tenant)s, 1, %(live)s, %(at)s, %(ended)s) returning id
"""


def planted(db: DB, row: Row, now: datetime) -> int | UUID:
    """Insert a row as it would be by now; the triggers are off."""
    at = Clock(db).set(now - timedelta(days=row.age))  # the id of a run has its time
    state = STATES[row.machine].get(row.outcome or "") or ("queued" if row.machine == "ops.run" else "pending")
    values = {
        "machine": row.machine, "state": state, "queue": row.queue, "tenant": row.tenant, "at": at,
        "ended": at if row.outcome else None, "due": None if row.outcome else at, "live": 0 if row.outcome else 1,
        "event": None, "run": None,
    }  # fmt: skip
    if not row.is_run:
        return _one(db, STEP, values)  # type: ignore[no-any-return]
    run_id: UUID = _one(db, RUN, values)
    step = _one(db, STEP, {**values, "machine": "flow.step", "run": run_id})
    db.execute("insert into holdfast.run_steps values (%s, %s, 'a')", [run_id, step])
    return run_id


def _one(db: DB, statement: str, values: dict[str, Any]) -> Any:
    row = db.execute(statement, values).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return row[0]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(chosen=st.lists(rules, max_size=5), what=st.lists(rows, max_size=12), batch=st.sampled_from([1, 2, 3, 1000]))
def test_a_sweep_removes_just_what_the_rules_no_longer_keep(
    stage: DB, chosen: list[Rule], what: list[Row], batch: int
) -> None:
    """X-16: and a dry run before it counts the same."""
    what = sorted(what, key=lambda row: -row.age)  # ids ascend with the time of creation
    wipe(stage)
    stage.execute("delete from holdfast.retention_rules where not is_default")
    stage.execute("update holdfast.retention_sweep set next_at = null, began_at = null, run_left = null")
    now = Clock(stage).freeze()
    for rule in chosen:
        span = None if rule.days is None else timedelta(days=rule.days)
        where = {"tenant": rule.tenant, "machine": rule.machine, "queue": rule.queue, "outcome": rule.outcome}
        run(stage, retention_calls.set_retention(span, **where))
    stage.execute("set session_replication_role = replica")
    ids = [planted(stage, row, now) for row in what]
    stage.execute("reset session_replication_role")
    Clock(stage).set(now)

    counted = {"tasks": 0, "runs": 0}
    for each in run(stage, retention_calls.prunable()):
        counted[each.what] += each.rows or 0
    swept = sweep(stage, batch=batch)

    gone = [is_pruned(row, chosen) for row in what]
    left = {found for table in ("steps", "runs") for (found,) in stage.execute(f"select id from holdfast.{table}")}
    assert [each not in left for each in ids] == gone
    pruned_runs = sum(row.is_run for row, is_gone in zip(what, gone, strict=True) if is_gone)
    assert (counted["tasks"], counted["runs"], swept.runs) == (sum(gone) - pruned_runs, pruned_runs, pruned_runs)
    assert swept.steps == sum(gone)
    broken = {v.invariant for v in run(stage, calls.violations())}
    assert not broken & {"run_is_whole", "edge_joins_two_steps", "noted_step_exists", "step_is_in_its_run"}

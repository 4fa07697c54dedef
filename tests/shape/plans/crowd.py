"""A database full of steps that a call has no business to read, loaded at a stroke and without statistics.

It holds 1.8 million steps with `make test-faults`, and a quarter of that with `make test`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Outcome, Release, Retry, Settlement

DB = Connection[Any]

TOMORROW, BULK, UNSERVED, HELD, ONE_RUN, DIAMONDS = "tomorrow", "bulk", "unserved", "held", "one run", "diamonds"

STEPS = """
insert into holdfast.steps (machine, kind, state, queue, created_at, {columns})
select '{machine}', '{kind}', '{state}', '{queue}', now(), {values} from generate_series(1, {amount}) g
"""
RUN = "'00000000-0000-7000-8000-000000000001'::uuid"
OF_DIAMOND = "('00000000-0000-7000-8001-' || lpad(to_hex(r), 12, '0'))::uuid"
LEASE = "lease_id, lease_owner, lease_until, attempt"
# Diamonds of seven: one, five beside each other, one.
LOAD_DIAMONDS = f"""
insert into holdfast.runs (id, machine, name, state, total, live, created_at)
select {OF_DIAMOND}, 'flow.task', 'diamond', 'pending', 7, 1, now() from generate_series(0, 3999) r;
insert into holdfast.steps (id, run_id, machine, kind, state, queue, due_at, waits, created_at)
select 10000000 + r * 7 + k, {OF_DIAMOND}, 'flow.step', 'noop', 'pending', '{DIAMONDS}',
       case when k = 1 then now() end, (array[0, 1, 1, 1, 1, 1, 5])[k], now()
  from generate_series(0, 3999) r, generate_series(1, 7) k;
insert into holdfast.run_steps select run_id, id from holdfast.steps where id > 10000000;
insert into holdfast.edges
select 10000000 + r * 7 + e.parent, 10000000 + r * 7 + e.child
  from generate_series(0, 3999) r,
       (values (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 7), (3, 7), (4, 7), (5, 7), (6, 7)) e (parent, child);
select setval('holdfast.step_ids', 20000000);
"""


def furnish(db: DB) -> None:
    """Make loading quick and keep statistics away; done before any plan is made, because it would end those."""
    for table in ("steps", "runs", "run_steps", "edges"):
        db.execute(f"alter table holdfast.{table} set (autovacuum_enabled = off)")
        db.execute(f"alter table holdfast.{table} set unlogged")


def warm(db: DB) -> None:
    """Make every call often enough, on empty tables, that its plans are kept."""
    outcomes: list[Outcome] = [Done(), Retry(), Fail(), Release()]
    for _ in range(8):
        for kinds in (None, ["served"]):
            assert run(db, calls.claim_steps("w", BULK, kinds, batch=500)) == []
        run(db, calls.settle_steps([Settlement(no, no, outcome) for no, outcome in enumerate(outcomes)]))
        run(db, calls.renew_leases("w", [1], step_ids=[1]))
        run(db, calls.rescue_steps())
    (run_id,) = run(db, calls.start_run("flow.task", "warm", "flow.step", steps=[{"kind": "a", "queue": "warm"}]))
    (step,) = run(db, calls.claim_steps("w", "warm"))
    run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Fail("warm"))]))
    for wish in (calls.retry(str(run_id)), calls.cancel(str(run_id))):
        run(db, wish)


@dataclass(frozen=True)
class Sizes:
    """How many steps of each sort there are."""

    share: int = 1  # of the whole

    @property
    def tomorrow(self) -> int:
        return 1_000_000 // self.share

    @property
    def many(self) -> int:
        """The due ones of the bulk queue, those that are over, and those that nobody serves."""
        return 200_000 // self.share

    @property
    def some(self) -> int:
        """Those that are held, and those of one run."""
        return 100_000 // self.share


def load(db: DB, sizes: Sizes) -> None:
    """Fill the tables past the triggers, as a bulk load does."""
    db.execute("set session_replication_role = replica")
    due = "due_at", "now() - interval '1 hour' + g * interval '1 ms'"
    _steps(
        db, TOMORROW, sizes.tomorrow, "due_at, priority", "now() + interval '1 day' + g * interval '1 ms', 5 * (g % 2)"
    )
    _steps(db, BULK, sizes.many, "finished_at, attempt", "now(), 1", state="done")
    _steps(db, BULK, sizes.many, *due)
    _steps(db, UNSERVED, sizes.many, *due, kind="nobody")
    _steps(db, UNSERVED, 500, "due_at", "now()", kind="served")
    _steps(
        db, HELD, sizes.some, LEASE, "nextval('holdfast.lease_ids'), 'x', now() + interval '1 day', 1", state="running"
    )
    db.execute(
        f"""insert into holdfast.runs (id, machine, name, state, total, live, created_at)
                           values ({RUN}, 'flow.task', 'large', 'pending', {sizes.some}, {sizes.some}, now())"""
    )
    _steps(db, ONE_RUN, sizes.some, "due_at, run_id", f"now(), {RUN}", machine="flow.step")
    db.execute(f"insert into holdfast.run_steps select run_id, id from holdfast.steps where run_id = {RUN}")
    db.execute(LOAD_DIAMONDS)
    db.execute("""insert into holdfast.queues (queue, top_priority, created_at)
                  select queue, max(priority), now() from holdfast.steps group by queue on conflict do nothing""")
    db.execute("set session_replication_role = origin")


def analyze(db: DB) -> None:
    """Gather statistics of a time when nothing was parked; what an earlier test left so is put back."""
    db.execute("set session_replication_role = replica")
    db.execute("""update holdfast.steps set due_at = parked_due_at, parked_due_at = null, parked_for = null
                   where parked_for is not null""")
    db.execute("set session_replication_role = origin")
    db.execute("vacuum (analyze) holdfast.steps, holdfast.runs, holdfast.run_steps, holdfast.edges")


def let_leases_run_out(db: DB, amount: int) -> None:
    """Put held steps there whose worker fell silent yesterday."""
    db.execute("set session_replication_role = replica")
    lease = "nextval('holdfast.lease_ids'), 'y', now() - interval '1 day', 1"
    _steps(db, HELD, amount, LEASE, lease, state="running")
    db.execute("set session_replication_role = origin")


def _steps(
    db: DB,
    queue: str,
    amount: int,
    columns: str,
    values: str,
    *,
    machine: str = "work.task",
    kind: str = "noop",
    state: str = "pending",
) -> None:
    text = {"queue": queue, "columns": columns, "values": values, "machine": machine, "kind": kind, "state": state}
    db.execute(STEPS.format(amount=amount, **text))

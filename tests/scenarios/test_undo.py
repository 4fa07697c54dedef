"""Rollbacks and passes whose workers are killed: both moves or none, and each page counts once."""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Holdfast
from holdfast.rules import Rule, everything, percent
from holdfast.rules.handle import RuleRun
from holdfast.rules.table import Table
from holdfast.testing import Clock, drain
from scenarios.crew import HERE, Crew, Database, until
from scenarios.proof import Proof
from scenarios.test_rules import CALL

KILLED = -signal.SIGKILL
ITEMS = 12  # three calls, three pages
LATER = datetime.now(UTC) + timedelta(days=1)  # the tests run what is scheduled themselves
OWN, OTHER = "own-before_commit", "other-after_channel_write"  # channels of the app `sales`
MADE = """
create schema sales;
create table sales.products (sku text primary key, price numeric);
create table sales.log (id bigint generated always as identity, sku text, price numeric);
create function sales.note() returns trigger language plpgsql as
  $$ begin insert into sales.log (sku, price) values (new.sku, new.price); return null; end $$;
create trigger note after update on sales.products for each row execute function sales.note();
insert into sales.products select 'S' || n, 10 from generate_series(1, 12) n;
"""


def sold(database: Database, channel: str) -> tuple[Holdfast, RuleRun]:
    """Apply a sale; the app of this process has the channel too."""
    with database.connection() as connection:
        connection.execute(MADE)
    hf = Holdfast(database.dsn)
    dsn = hf.dsn if channel == OTHER else None
    hf.rules.channel(channel, Table("sales.products", key="sku", price="price", currency="EUR", dsn=dsn), batch=5)
    run = hf.rules.preview(Rule("tenth", where=everything, change=percent(-10)), channel=channel, apply=True)
    drain(hf)
    assert run.summary.status == "APPLIED"
    return hf, run


def killed(crew: Crew, channel: str, failpoint: str) -> None:
    """Let a worker be killed at a failpoint, or at its nth visit (`name:3`), then hire another."""
    name, _, turn = failpoint.partition(":")
    member = crew.hire("--queue", f"rules:{channel}", app="sales", failpoint=f"{name}:kill9@{turn or 1}")
    assert member.exit_code() == KILLED
    crew.hire("--queue", f"rules:{channel}", app="sales")


@pytest.mark.parametrize(
    ("channel", "failpoint"),
    [
        pytest.param(OWN, "before_commit", id="between-the-moves"),
        *(pytest.param(OWN, name, marks=pytest.mark.long) for name in ("after_commit", "before_commit:3")),
        *(
            pytest.param(OTHER, name, marks=pytest.mark.long)
            for name in ("after_channel_write", "before_settle_batch", "after_settle_batch")
        ),
    ],
)
def test_a_rollback_that_is_killed_moves_both_targets_or_none(
    crew: Crew, database: Database, proof: Proof, channel: str, failpoint: str
) -> None:
    """A-123, C-95, R27: also before the last target, which moves the run"""
    hf, run = sold(database, channel)
    undo = run.rollback(apply=True)
    killed(crew, channel, failpoint)
    until(lambda: run.summary.status == "ROLLED_BACK", "the run was rolled back")

    lost = database.value("select count(*)::int from sales.products where price <> 10")
    twice = database.value("select coalesce(sum(n - 2), 0)::int from (select count(*) n from sales.log group by sku) c")
    proof.add(rounds=1, kills=1, lost=lost, twice=twice)
    assert (lost, twice) == (0, 0)
    assert undo.summary.status == "APPLIED"
    assert database.value("select count(*)::int from rules.price_changes") == 2 * ITEMS
    assert database.rows("select * from holdfast.violations()") == []
    hf.close()


@pytest.mark.parametrize(
    "failpoint",
    [
        "after_rollback",
        *(pytest.param(n, marks=pytest.mark.long) for n in ("before_rollback", "before_reconcile", "after_reconcile")),
    ],
)
def test_a_client_killed_while_it_plans_leaves_a_plan_or_none(
    crew: Crew, database: Database, proof: Proof, failpoint: str
) -> None:
    """R2, A-123: of a rollback or a pass; the call is repeated, and the run is undone or checked once"""
    hf, run = sold(database, OWN)
    side, action = failpoint.split("_")
    command = (sys.executable, "-c", CALL, str(HERE), str(run.id), action)

    assert crew.run("client", *command, failpoint=f"{failpoint}:kill9").exit_code() == KILLED
    made = {"rollback": "rules.rule_runs where source = 'rollback'", "reconcile": "rules.passes where pass = 'manual'"}
    assert database.value(f"select count(*)::int from {made[action]}") == (side == "after")
    if action == "rollback":
        run.rollback(apply=True)
    else:
        run.reconcile()
    drain(hf)

    twice = database.value("select coalesce(sum(n - 2), 0)::int from (select count(*) n from sales.log group by sku) c")
    proof.add(rounds=1, kills=1, lost=0, twice=max(twice, 0))
    if action == "rollback":
        assert (run.summary.status, twice) == ("ROLLED_BACK", 0)
    else:
        assert {(each.status, each.total_checked) for each in run.passes() if each.kind == "manual"} == {
            ("done", ITEMS)
        }
    assert database.rows("select * from holdfast.violations()") == []
    hf.close()


@pytest.mark.parametrize(
    "failpoint",
    ["page_recorded", *(pytest.param(n, marks=pytest.mark.long) for n in ("page_checked", "correction_planned"))],
)
def test_a_pass_that_is_killed_counts_each_page_once(
    crew: Crew, database: Database, proof: Proof, failpoint: str
) -> None:
    """A-71, A-75, A-83: between a page and its cursor, and with a correction"""
    hf, run = sold(database, OWN)
    with database.connection() as connection:
        connection.execute("update sales.products set price = 8 where sku in ('S1', 'S7')")
    run.reconcile(correct=True)
    killed(crew, OWN, failpoint)
    until(lambda: run.passes()[-1].status == "done", "the pass ended")
    until(lambda: database.value("select count(*)::int from sales.products where price <> 9") == 0, "it is corrected")

    report = run.passes()[-1]
    proof.add(rounds=1, kills=1, lost=0, twice=report.total_checked - ITEMS)
    assert (report.total_checked, report.mismatches) == (ITEMS, 2)
    kind = "automation.reconciliation.mismatch"
    events = database.value(f"select count(*)::int from rules.events where event_type = '{kind}'")
    assert events == 2
    runs = "select count(*)::int from rules.rule_runs where source = 'reconciliation'"
    assert database.value(runs) == 1
    hf.close()


def test_three_workers_report_each_pass_once(crew: Crew, database: Database, proof: Proof) -> None:
    """A-83: all passes come due while three workers wait, who are killed and replaced in between"""
    hf, run = sold(database, OWN)
    with database.connection() as connection:
        connection.execute("update sales.products set price = 8 where sku in ('S1', 'S7')")
        clock = Clock(connection)

        def reported(**later: int) -> None:
            """Let three workers wait, move the clock, and wait until they have run all that is due."""
            members = [crew.hire("--queue", f"rules:{OWN}", app="sales") for _ in range(3)]
            for member in members:
                member.await_said("worker.connected")
            clock.advance(timedelta(**later))
            until(lambda: not any(each.due_at <= clock.now() and each.finished_at is None for each in run.passes()),
                  "the passes that are due ended")  # fmt: skip
            for member in members:
                member.kill()

        reported(minutes=5)
        reported(days=1)  # the delayed and the first daily pass are due at once
        reported(days=1)

    done = [each for each in run.passes() if each.finished_at is not None]
    assert [each.kind for each in done] == ["immediate", "delayed", "daily", "daily"]
    assert {(each.status, each.total_checked, each.mismatches) for each in done} == {("done", ITEMS, 2)}
    told = database.rows("select event_key, event_type from rules.events where event_type ~ 'reconciliation'")
    reports = [key for key, kind in told if kind.endswith("completed")]
    assert sorted(reports) == [f"{run.id}:reconciliation:{each.no}" for each in done]
    assert len(told) == len(set(told)) == 3 * len(done)  # a report and two mismatches per pass
    proof.add(rounds=3, kills=9, lost=4 - len(done), twice=len(reports) - len(done))
    assert database.rows("select * from holdfast.violations()") == []
    hf.close()


@pytest.mark.parametrize("failpoint", ["revert_planned", pytest.param("after_commit", marks=pytest.mark.long)])
def test_a_change_whose_end_is_killed_is_undone_once(
    crew: Crew, database: Database, proof: Proof, failpoint: str
) -> None:
    """A-17, A-120, R27: the task that undoes it plans one rollback"""
    hf, run = sold(database, OWN)
    run.apply(revert_at=LATER)
    database.value(f"select holdfast.run_schedule('rules:revert:{run.id}')")
    killed(crew, OWN, failpoint)
    until(lambda: run.summary.status == "ROLLED_BACK", "the run was rolled back")

    undone = "select count(*)::int from rules.rule_runs where source = 'rollback'"
    twice = database.value("select coalesce(sum(n - 2), 0)::int from (select count(*) n from sales.log group by sku) c")
    proof.add(rounds=1, kills=1, lost=0, twice=twice)
    assert (database.value(undone), twice) == (1, 0)
    assert database.rows("select * from holdfast.violations()") == []
    hf.close()


@pytest.mark.parametrize(
    "failpoint", ["scheduled_previewed", pytest.param("scheduled_applied", marks=pytest.mark.long)]
)
def test_a_tick_whose_task_is_killed_makes_one_run(
    crew: Crew, database: Database, proof: Proof, failpoint: str
) -> None:
    """A-120: between the preview and its apply, and after it"""
    hf, _ = sold(database, OWN)
    half = Rule("half", where=everything, change=percent(-50))
    hf.rules.schedule(half, channel=OWN, name="half", at=LATER)
    drain(hf)  # a worker of this app defines it
    database.value("select holdfast.run_schedule('half')")
    killed(crew, OWN, failpoint)
    made = "select count(*)::int from rules.rule_runs where source = 'schedule' and status = 'APPLIED'"
    until(lambda: database.value(made) == 1, "the run of the tick ended")

    lost = database.value("select count(*)::int from sales.products where price <> 4.5")
    twice = database.value("select count(*)::int - 1 from rules.rule_runs where source = 'schedule'")
    proof.add(rounds=1, kills=1, lost=lost, twice=twice)
    assert (lost, twice) == (0, 0)
    assert database.rows("select * from holdfast.violations()") == []
    hf.close()

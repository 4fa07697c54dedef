"""How long rule runs, previews and price changes are kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection

from cli import in_process
from holdfast import Holdfast, errors
from holdfast.rules.pass_handle import PassHandle
from holdfast.testing import Clock
from kernel.retention import days, sweep
from kernel.steps import value
from rules.plans import applied, claim, previewed, refused, settle, work

DB = Connection[Any]
ROWS = ("run_facts", "plans", "target_values", "refused_items", "exceptions")
PASSES = ("passes", "pass_parts", "findings")


def left(db: DB) -> dict[str, int]:
    return {name: value(db, f"select count(*) from rules.{name}") for name in ROWS}


@pytest.mark.parametrize("batch", [100, 2], ids=["whole", "large"])
def test_a_run_goes_ninety_days_after_its_end_and_its_price_changes_after_two_years(
    db: DB, clock: Clock, batch: int
) -> None:
    """X-16"""
    run_id = previewed(db, 5)
    applied(db, run_id, without_ids=[])
    work(db)
    db.execute("select holdfast.cancel(pass_id::text) from rules.reconciliations")
    clock.advance(days(89))
    sweep(db, batch=batch)
    assert left(db)["run_facts"] == 1
    clock.advance(days(2))

    while sweep(db, batch=batch).runs:  # passes before the run that they check
        pass
    assert set(left(db).values()) == {0}
    assert {value(db, f"select count(*) from rules.{name}") for name in PASSES} == {0}
    assert value(db, "select count(*) from holdfast.steps") == 0
    assert value(db, "select count(*) from rules.price_changes") == 5
    assert refused(db, "select rules.apply(%s)", [run_id]) == "RN012"
    clock.advance(days(2 * 366))
    db.execute("select holdfast.make_partitions(13)")
    sweep(db, batch=batch)
    assert value(db, "select count(*) from rules.price_changes") == 0


def test_handles_and_commands_tell_a_pruned_run_from_one_that_never_was(
    hf: Holdfast, dsn: str, db: DB, clock: Clock
) -> None:
    """X-16: with the rule that removed it, also by the handle of a pass."""
    run_id = previewed(db, 2)
    applied(db, run_id)
    work(db)
    pass_id = value(db, "select pass_id from rules.reconciliations order by no limit 1")
    db.execute("select holdfast.cancel(pass_id::text) from rules.reconciliations")
    clock.advance(days(91))
    while sweep(db).runs:
        pass
    never = UUID("018f0000-0000-7000-8000-000000000000")

    def reads(run: UUID, of_pass: UUID) -> list[Callable[[], Any]]:
        handle, check = hf.rules.run(run), PassHandle(of_pass, hf._engine)
        of_run = [handle.status, handle.result, lambda: handle.summary, lambda: list(handle.targets())]
        return [*of_run, handle.retry, handle.resolve, check.status, check.result, lambda: check.summary]

    for read in reads(run_id, pass_id):
        with pytest.raises(errors.Pruned, match="90 days"):
            read()
    for read in reads(never, never):
        with pytest.raises(errors.NotFound):
            read()
    for command in ("show", "targets"):
        gone, unknown = (
            in_process.run(["rules", command, str(each)], {**os.environ, "HOLDFAST_DSN": dsn}, None)
            for each in (run_id, never)
        )
        assert (gone.returncode, "90 days" in gone.stderr) == (4, True)
        assert (unknown.returncode, "pruned" in unknown.stderr) == (4, False)


@pytest.mark.parametrize("batch", [100, 2], ids=["whole", "large"])
def test_a_preview_that_was_never_applied_goes_seven_days_after_it_expired(db: DB, clock: Clock, batch: int) -> None:
    """X-16"""
    previewed(db, 5, expires_in=timedelta(days=1))
    kept = previewed(db, 5, channel="other", expires_in=timedelta(days=30))
    clock.advance(days(7.9))
    sweep(db, batch=batch)
    assert left(db)["run_facts"] == 2
    clock.advance(days(0.2))

    assert sweep(db, batch=batch).runs == 1

    assert left(db) == {"run_facts": 1, "plans": 1, "target_values": 5, "refused_items": 0, "exceptions": 0}
    assert value(db, "select run_id from rules.run_facts") == kept
    assert value(db, "select count(*) from holdfast.steps") == 5


def test_an_applied_run_is_not_taken_for_a_forgotten_preview(db: DB, clock: Clock) -> None:
    previewed(db, 1, channel="other")
    queued = previewed(db, 1)
    applied(db, queued)
    clock.advance(days(40))

    sweep(db)

    assert value(db, "select run_id from rules.run_facts") == queued


def test_passes_that_nobody_serves_are_called_off_and_the_run_goes(db: DB, clock: Clock) -> None:
    """X-16: a worker that holds a page keeps its pass"""
    clock.freeze()
    run_id = previewed(db, 2)
    applied(db, run_id)
    work(db)
    clock.advance(days(29))
    sweep(db)
    assert passes(db) == ["pending"] * 3
    clock.advance(days(2.1))
    (held,) = claim(db, batch=1)

    sweep(db)

    assert sorted(passes(db)) == ["cancelled", "cancelled", "running"]
    settle(db, [held])
    clock.advance(days(100))
    while sweep(db).runs:
        pass
    assert left(db)["run_facts"] == 0


def passes(db: DB) -> list[str]:
    return [status for (status,) in db.execute("select status from rules.reconciliations order by no")]

"""A run that retention removed can be told from one that never existed, by SQL, handles and commands."""

from __future__ import annotations

from typing import Any

import pytest

from cli.conftest import cli
from holdfast import Holdfast, errors
from holdfast.testing import Clock
from kernel.retention import days, sweep
from ops.runs import DB, called, claim, finish, queue, refused
from properties.guards import login_for

__all__ = ["cli"]
NEVER = "run-00000000-0000-4000-8000-000000000000"
CALLS: dict[str, tuple[Any, ...]] = {
    "append_event": ("info", "x"), "finish_run": ("failed",), "heartbeat": ("worker-001",), "cancel_run": (),
    "retry_run": (), "rollback_run": (), "add_artifact": ("image", "x"), "decide_approval": ("approved", "yes"),
}  # fmt: skip


def pruned_run(db: DB, clock: Clock) -> tuple[str, int]:
    """Return the id of a failed run that retention has removed, and the number of its step."""
    clock.freeze()
    run_id = queue(db)
    claim(db)
    finish(db, run_id, "failed")
    ((step_id,),) = db.execute("select * from ops.step_of_run(%s)", [run_id]).fetchall()
    clock.advance(days(91))
    sweep(db)
    assert called(db, "violations") == []
    return run_id, step_id


def test_every_function_tells_a_pruned_run_from_one_that_never_was(db: DB, clock: Clock) -> None:
    """X-16"""
    run_id, step_id = pruned_run(db, clock)

    for function, given in CALLS.items():
        codes = [refused(db, function, each, *given) for each in (run_id, str(step_id), NEVER)]
        assert codes == ["RN012", "RN012", "RN004"], function


def test_another_tenants_pruned_run_looks_as_if_it_never_existed(db: DB, clock: Clock) -> None:
    """X-16, R34"""
    run_id, step_id = pruned_run(db, clock)

    with login_for(db, "hf_operator", "b") as other:
        answers = [refused(other, "cancel_run", each) for each in (run_id, str(step_id), NEVER)]
        numbers = other.execute("select * from ops.step_of_run(%s)", [run_id]).fetchall()

    assert answers == ["RN004"] * 3
    assert numbers == []


def test_ids_and_webhook_deliveries_are_forgotten_with_the_months_of_the_journal(db: DB, clock: Clock) -> None:
    """X-16"""
    run_id, _ = pruned_run(db, clock)
    called(db, "record_delivery", p_source="github", p_delivery="d1", p_event="push", p_outcome="queued")
    known = "select (select count(*) from ops.pruned_runs), (select count(*) from ops.deliveries)"
    clock.advance(days(180))
    sweep(db)
    assert db.execute(known).fetchone() == (1, 1)

    clock.advance(days(40))
    sweep(db)

    assert db.execute(known).fetchone() == (0, 0)
    assert refused(db, "cancel_run", run_id) == "RN004"


@pytest.mark.parametrize("is_early", [True, False], ids=["handle from before", "handle by id"])
def test_a_handle_says_that_its_run_was_pruned(dsn: str, db: DB, clock: Clock, *, is_early: bool) -> None:
    """X-16: with the id that its user knows, and the number that `runs show` takes."""
    app = Holdfast(dsn)
    handle = app.ops.queue("proj-123", env="prod")
    if is_early:
        handle.status()  # it knows the number of its step from here on
    handle.cancel("no")
    _, step_id = pruned_run(db, clock)

    for method in ("status", "result", "cancel", "retry", "resolve", "rollback"):
        with pytest.raises(errors.Pruned) as gone:
            getattr(handle, method)()
        with pytest.raises(errors.NotFound):
            getattr(app.handle(NEVER), method)()
        assert "30 days" in gone.value.what
        assert f"runs show {step_id - 1}" in (gone.value.next or "")
        assert gone.value.where == (str(step_id - 1) if method == "resolve" else handle.id)
    assert [event.event for event in handle.events()][-1] == "cancelled"
    app.close()


def test_commands_say_so_and_runs_show_tells_its_story(cli: Any, db: DB, clock: Clock) -> None:
    """X-16"""
    run_id, step_id = pruned_run(db, clock)

    for command in ("show", "logs", "wait", "artifacts", "cancel", "retry", "rollback"):
        gone, never = cli("ops", command, run_id), cli("ops", command, NEVER)
        assert (f"{run_id} was pruned" in gone.stderr, f"runs show {step_id}" in gone.stderr) == (True, True)
        assert "pruned" not in never.stderr
        assert (gone.returncode, never.returncode) == (4, 4)
    assert "failed" in cli("runs", "show", str(step_id)).stdout

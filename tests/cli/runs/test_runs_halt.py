"""`holdfast runs pause`, `resume` and `stop`, and what the other commands show of a large run."""

from __future__ import annotations

import json

from kernel.plans import begun, draft, halt, install
from kernel.steps import claim, finish, run_row


def test_a_run_is_paused_resumed_and_stopped_with_a_reason(cli, db):
    install(db, 4)
    run_id = begun(db, 9)

    for command, halted in (("pause", "paused"), ("pause", "paused"), ("resume", None), ("stop", "stopped")):
        done = cli("runs", command, str(run_id), "--reason", "a look", "--json")
        assert (done.returncode, json.loads(done.stdout)["done"][0]["id"]) == (0, str(run_id))
        assert run_row(db, run_id)["halt"] == halted

    rows = db.execute("select event, reason from holdfast.run_changes order by id").fetchall()
    assert rows == [("paused", "a look"), ("resumed", "a look"), ("stopped", "a look")]
    for command in ("pause", "resume", "stop"):
        refused = cli("runs", command, str(run_id))
        assert (refused.returncode != 0) == (command != "stop")
    assert cli("runs", "stop", "00000000-0000-7000-8000-000000000000").returncode == 4


def test_the_lists_say_what_is_admitted_and_what_is_paused(cli, db):
    install(db, 4)
    run_id, other = begun(db, 9), draft(db, 2)
    finish(db, claim(db))
    halt(db, "pause", run_id, "lunch")

    shown = cli("runs", "show", str(run_id)).stdout
    listed = {row["id"]: row["standing"] for row in json.loads(cli("runs", "list", "--json").stdout)["runs"]}
    step = json.loads(cli("runs", "show", str(claimed(db)), "--json").stdout)

    assert "paused by" in shown
    assert "lunch" in shown
    assert "4, 5 not admitted" in shown
    assert f"holdfast runs resume {run_id}" in shown
    assert (listed[str(run_id)], listed[str(other)]) == ("paused", "not admitted")
    assert (step["standing"], "window" in step["why"]) == ("not admitted", True)


def claimed(db):
    """Find a step that the window has not reached."""
    return db.execute("select max(id) from holdfast.steps where kind = 'item' and due_at is null").fetchone()[0]

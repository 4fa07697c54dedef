"""`holdfast limits` and `holdfast queues limit`, and what `runs show` says of a step that a limit refused."""

from __future__ import annotations

from kernel.steps import claim, start, value


def test_a_limit_is_set_shown_paused_resumed_and_removed(cli, found, db):
    done = cli("limits", "set", "shop:*", "--concurrency", "2", "--rate", "40/1s", "--burst", "80")
    assert (done.returncode, done.stderr) == (0, "limit shop:* is defined\n")
    for _ in range(3):
        start(db, limits=["shop:acme"])
    claim(db, batch=3)

    limits = {limit["name"]: limit for limit in found("limits", "list")["limits"]}
    assert (limits["shop:acme"]["held"], limits["shop:acme"]["parked"], limits["shop:acme"]["rule"]) == (2, 1, "shop:*")
    assert cli("limits", "pause", "shop:acme", "--for", "10m", "--reason", "a sale").returncode == 0
    assert found("limits", "show", "shop:acme")["limits"][0]["reason"] == "a sale"
    assert "shop:acme" in cli("limits", "show", "shop:*").stdout
    assert cli("limits", "resume", "shop:acme").returncode == 0
    assert found("limits", "show", "shop:acme")["limits"][0]["paused_until"] is None
    assert cli("limits", "remove", "shop:*").returncode == 0
    assert value(db, "select count(*) from holdfast.limits") == 0
    assert [change["event"] for change in found("limits", "show", "shop:acme")["changes"]] == ["resumed", "paused"]


def test_a_limit_that_is_not_there_is_not_found(cli):
    assert cli("limits", "show", "none").returncode != 0
    assert cli("limits", "remove", "none").returncode != 0
    assert cli("limits", "list").returncode == 0


def test_a_queue_is_limited(cli, db):
    start(db, queue="mail")
    start(db, queue="mail")
    assert cli("queues", "limit", "mail", "--concurrency", "1").returncode == 0

    assert len(claim(db, queue="mail", batch=2)) == 1


def test_a_step_that_a_limit_refused_says_which_and_who_holds_it(cli, found, db):
    cli("limits", "set", "shop:acme", "--concurrency", "2")
    one, two, waits = (start(db, limits=["shop:acme"]) for _ in range(3))
    claim(db, batch=3)

    shown = cli("runs", "show", str(waits))

    assert f"waits for shop:acme: 2 of 2 held by {one} and {two}" in shown.stdout + shown.stderr
    listed = found("runs", "list", "--state", "limited")["runs"]
    assert [row["id"] for row in listed] == [str(waits)]
    cli("limits", "pause", "shop:acme")
    assert "upstream paused" in cli("runs", "show", str(waits)).stdout

"""`holdfast queues` and `holdfast workers`."""

from __future__ import annotations

from datetime import timedelta

from psycopg.types.json import Jsonb

from kernel.steps import claim, start, value

EVIL = "q\u202e[2J 'x'"


def test_queues_are_listed_with_what_stands_in_them(cli, found, db, clock):
    start(db, queue="mail")
    start(db, queue="mail", priority=9)
    start(db, queue="mail", due_at=clock.now() + timedelta(days=1))
    start(db, queue="idle")
    claim(db, "w", queue="idle")

    queues = found("queues", "list")["queues"]

    assert [(q["queue"], q["due"], q["later"], q["live_workers"]) for q in queues] == [
        ("idle", 0, 0, 1),
        ("mail", 2, 1, 0),
    ]
    assert cli("queues", "list").stdout.splitlines()[2].startswith("mail\t2\t1\t0\t")


def test_no_queues_yet(cli):
    done = cli("queues", "list")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no queues yet: a queue is created on first use\n")


def test_a_queue_is_paused_with_a_reason_and_resumed(cli, found, db):
    start(db, queue=EVIL)

    paused = cli("queues", "pause", EVIL, "--reason", "a look")
    listed = found("queues", "list")["queues"]
    (claimed,) = [claim(db, queue=EVIL)]
    resumed = cli("queues", "resume", EVIL, "--json")

    assert (paused.returncode, paused.stdout) == (0, "")
    assert "\u202e" not in paused.stderr + cli("queues", "list").stdout
    assert (listed[0]["queue"], listed[0]["pause_reason"], claimed) == (EVIL, "a look", [])
    assert (resumed.returncode, value(db, "select paused_at from holdfast.queues")) == (0, None)


def test_a_queue_that_is_none_is_4(cli):
    for verb in ("pause", "resume"):
        done = cli("queues", verb, "nowhere")
        assert (done.returncode, done.stdout) == (4, "")
        assert all(part in done.stderr for part in ("queue nowhere", "next:  ", "holdfast queues list"))


def test_workers_are_listed_and_those_that_are_gone_when_asked_for(cli, found, db, clock):
    """What each serves and holds, and whether it is alive."""
    db.execute(
        "select holdfast.enlist_worker('gone', array['mail'], null, null, %s)", [Jsonb({"host": "h\x1b[2J", "pid": 7})]
    )
    clock.advance(timedelta(minutes=10))
    start(db)
    claim(db, "alive", kinds=["mail"])

    (alive,) = found("workers")["workers"]
    everybody = found("workers", "--all")["workers"]
    lines = cli("workers", "--all").stdout

    assert (alive["worker"], alive["standing"], alive["queues"], alive["held"]) == ("alive", "alive", ["default"], 1)
    assert alive["kinds"] == ["mail"]
    assert [(w["worker"], w["about"]) for w in everybody][1:] == [("gone", {"host": "h\x1b[2J", "pid": 7})]
    assert r"h\x1b[2J" in lines


def test_no_workers(cli):
    done = cli("workers")

    assert (done.returncode, done.stdout) == (0, "")
    assert "holdfast workers --all" in done.stderr

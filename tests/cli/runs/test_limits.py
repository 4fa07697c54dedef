"""`holdfast limits` and `holdfast queues limit`, and what `runs show` says of a step that a limit refused."""

from __future__ import annotations

import pytest

from holdfast.kernel import limit_calls
from holdfast.kernel.db import run
from kernel.steps import claim, node, seconds, start, start_flow, value


def test_a_limit_is_set_shown_paused_resumed_and_removed(cli, found, db):
    done = cli("limits", "set", "shop:*", "--concurrency", "2", "--rate", "40/1s", "--burst", "80")
    assert (done.returncode, done.stdout) == (0, "")
    assert "shop:* is defined: concurrency 2, rate 40/1s, burst 80" in done.stderr
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


def test_each_change_of_a_limit_is_reported_as_json(found):
    for event, *arguments in (
        ("defined", "limits", "set", "api", "--concurrency", "1"),
        ("paused", "limits", "pause", "api"),
        ("resumed", "limits", "resume", "api"),
        ("removed", "limits", "remove", "api"),
    ):
        assert found(*arguments) == {"limit": "api", "event": event}
    assert found("queues", "limit", "mail", "--concurrency", "1") == {"limit": "queue:mail", "concurrency": 1}


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


def test_setting_a_limit_says_what_it_replaced(cli):
    """A part that is left out is not limited any more, which an operator in a hurry should see."""
    cli("limits", "set", "shop:*", "--rate", "100/1m", "--breaker-after", "5", "--breaker-for", "90s")

    again = cli("limits", "set", "shop:*", "--concurrency", "1").stderr

    assert "concurrency 1; before: rate 100/1m, burst 100, breaker_after 5, breaker_for 1.5m" in again
    assert "before" not in cli("limits", "set", "shop:*", "--concurrency", "1").stderr
    assert "nothing is limited" in cli("limits", "set", "shop:vip").stderr


def test_a_limit_is_reset_to_the_rule_of_the_app(cli, found, db):
    run(db, limit_calls.define_limit("shop:*", concurrency=5, rate=2, per=seconds(1), of_app=True))
    cli("limits", "set", "shop:*", "--concurrency", "1")
    cli("limits", "remove", "shop:*")

    assert cli("limits", "reset", "shop:*").returncode == 0

    (limit,) = found("limits", "show", "shop:*")["limits"]
    assert (limit["concurrency"], limit["rate"], limit["per"], limit["burst"]) == (5, 2, 1, 2)
    shown = cli("limits", "show", "shop:*").stdout
    assert "defined by the app of" in shown
    assert "concurrency 5, rate 2, per 00:00:01, burst 2" in shown
    assert cli("limits", "reset", "none").returncode != 0


def test_a_family_shows_the_changes_of_its_values(cli, found, db):
    cli("limits", "set", "shop:*", "--concurrency", "1")
    cli("limits", "pause", "shop:acme", "--reason", "a sale")

    changes = found("limits", "show", "shop:*")["changes"]

    assert [(change["name"], change["event"]) for change in changes] == [("shop:acme", "paused"), ("shop:*", "defined")]


@pytest.mark.parametrize("rate", ["many", "5/soon", "/1s", ""])
def test_a_rate_that_is_none_is_refused_by_its_value(cli, rate):
    refused = cli("limits", "set", "shop", "--rate", rate)

    assert refused.returncode == 2
    assert repr(rate) in refused.stderr
    assert "next:" in refused.stderr


def test_a_step_whose_limit_has_opened_says_that_it_waits_for_a_worker(cli, found, db, clock):
    clock.freeze()
    cli("limits", "set", "api", "--rate", "1/1s", "--burst", "1")
    start(db, limits=["api"])
    waits = start(db, limits=["api"])
    claim(db, batch=2)
    assert "for 1 s more" in found("runs", "show", str(waits))["why"]

    clock.advance(seconds(5))

    shown = found("runs", "show", str(waits))
    assert "admits steps again" in shown["why"]
    assert "1 worker serves it" in shown["why"]
    assert "holdfast limits show api" in shown["commands"]


def test_a_flow_says_which_limit_its_steps_wait_for(cli, found, db):
    cli("limits", "set", "shop:acme", "--concurrency", "0")
    run_id = start_flow(db, node("push", limits=["shop:acme"]))
    claim(db)

    shown = found("flow", "show", str(run_id))

    assert shown["steps"][0]["limited_by"] == "shop:acme"
    assert "shop:acme" in shown["why"]
    page = cli("flow", "show", str(run_id)).stdout
    assert "limited: shop:acme" in page
    assert "holdfast limits show shop:acme" in page

"""What handlers say of themselves: kinds and policies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import Retry, Settlement
from holdfast.testing import Clock

DB = Connection[Any]


def test_a_plain_start_gets_its_kinds_queue_policy_and_lease(db: DB, clock: Clock) -> None:
    now = clock.freeze()
    run(db, calls.define_policy("twice", tries=2, waits=[timedelta(seconds=7)], jitter=0))
    run(db, calls.define_kind("mail", queue="post", policy="twice", lease=timedelta(seconds=40)))
    run(db, calls.start_task("mail"))

    (step,) = run(db, calls.claim_steps("a", "post"))
    run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Retry("no"))]))

    assert step.lease_until == now + timedelta(seconds=40)
    row = db.execute("select due_at, policy from holdfast.steps").fetchone()
    assert row == (now + timedelta(seconds=7), "twice")


def test_said_again_a_kind_and_a_policy_are_replaced(db: DB) -> None:
    run(db, calls.define_kind("mail", queue="post"))
    run(db, calls.define_kind("mail", queue="letters"))
    run(db, calls.define_policy("own", tries=2))
    run(db, calls.define_policy("own", tries=9))

    assert db.execute("select queue from holdfast.kinds where kind = 'mail'").fetchall() == [("letters",)]
    assert db.execute("select tries from holdfast.policies where policy = 'own'").fetchall() == [(9,)]


def test_a_policy_given_to_a_kind_later_counts_when_its_steps_fail(db: DB, clock: Clock) -> None:
    """C-65: the outside policy; by a failure reported and by a lease run out"""
    now = clock.freeze()
    run(db, calls.start_tasks([{"name": "mail"}] * 2))
    reported, silent = run(db, calls.claim_steps("a", batch=2, lease=timedelta(seconds=30)))

    run(db, calls.define_policy("patient", tries=9, waits=[timedelta(seconds=70)], jitter=0))
    run(db, calls.define_kind("mail", policy="patient"))
    run(db, calls.settle_steps([Settlement(reported.step_id, reported.lease_id, Retry("no"))]))
    clock.advance(timedelta(seconds=31))
    run(db, calls.rescue_steps())

    due = dict(db.execute("select id, due_at from holdfast.steps where policy is null").fetchall())
    assert due == {
        reported.step_id: now + timedelta(seconds=70),
        silent.step_id: now + timedelta(seconds=31 + 70),
    }


def test_a_kinds_later_policy_sets_the_budget_too(db: DB, clock: Clock) -> None:
    run(db, calls.start_tasks([{"name": "mail"}] * 2))
    reported, silent = run(db, calls.claim_steps("a", batch=2, lease=timedelta(seconds=30)))

    run(db, calls.define_policy("once", tries=1))
    run(db, calls.define_kind("mail", policy="once"))
    said = run(db, calls.settle_steps([Settlement(reported.step_id, reported.lease_id, Retry("no"))]))
    clock.advance(timedelta(seconds=31))
    said += run(db, calls.rescue_steps())

    assert [(s.step_id, s.event) for s in said] == [(reported.step_id, "failed"), (silent.step_id, "failed")]


def test_a_step_that_got_a_policy_keeps_it_when_its_kind_gets_another(db: DB) -> None:
    run(db, calls.define_policy("once", tries=1))
    run(db, calls.define_kind("mail", policy="once"))
    run(db, calls.start_task("mail"))
    run(db, calls.define_kind("mail", policy="flow.sql"))
    (step,) = run(db, calls.claim_steps("a"))

    (settled,) = run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Retry("no"))]))

    assert settled.event == "failed"


@pytest.mark.parametrize(
    "call",
    [
        calls.define_kind("mail", policy="none such"),
        calls.define_kind("mail", lease=timedelta(seconds=-1)),
        calls.define_kind(""),
        calls.define_policy("own", tries=0),
        calls.define_policy("own", jitter=2),
        calls.define_policy("own", growth=1001, law="power"),
        calls.define_policy("own", base=timedelta(seconds=-1)),
        calls.define_policy("work.task", tries=9),
    ],
)
def test_a_kind_or_policy_that_makes_no_sense_is_refused(db: DB, call: Call[None]) -> None:
    with pytest.raises(errors.BadInput):
        run(db, call)

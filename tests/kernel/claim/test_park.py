"""Parking by a person: a due step waits for an approval, and is due again as it was."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done
from holdfast.testing import Clock
from kernel.start.test_start import hints
from kernel.steps import (
    DB,
    claim,
    claim_one,
    column,
    counts,
    fingerprint,
    finish,
    ids_by_name,
    node,
    seconds,
    settle,
    start,
    start_flow,
    step_row,
    value,
    violations,
)
from security.conftest import Login, login

pytestmark = pytest.mark.one_server

__all__ = ["login"]


def park(db: DB, *ids: int, parked_for: str = "approval", **options: Any) -> list[int]:
    return run(db, calls.park_steps(ids, parked_for, **options))


def unpark(db: DB, *ids: int, **options: Any) -> list[int]:
    return run(db, calls.unpark_steps(ids, **options))


def test_a_parked_step_waits_and_is_due_again_as_it_was(db: DB, clock: Clock) -> None:
    clock.freeze()
    first, second = start(db), start(db, due_at=clock.now() + seconds(60))
    before = [column(db, step, "due_at") for step in (first, second)]

    assert park(db, second, first, 999) == [first, second]
    clock.advance(seconds(100))
    assert claim(db, batch=5) == []
    assert value(db, "select array_agg(standing) from holdfast.step_list") == ["parked", "parked"]
    assert violations(db) == []
    assert unpark(db, first, second) == [first, second]

    assert [column(db, step, "due_at") for step in (first, second)] == before
    assert [s.step_id for s in claim(db, batch=5)] == [first, second]
    assert violations(db) == []


def test_only_what_is_free_and_due_is_parked(db: DB) -> None:
    over, held = start(db), start(db)
    settle(db, claim_one(db), Done())
    claim_one(db)
    run_id = start_flow(db, node("a"), node("b", "a"))
    names = ids_by_name(db, run_id)
    other = start(db)
    park(db, other, parked_for="budget")
    before = fingerprint(db)

    assert park(db, over, held, names["b"], other) == []

    assert fingerprint(db) == before
    assert park(db, *names.values()) == [names["a"]]
    assert (counts(db, run_id), violations(db)) == ({"total": 2, "live": 1}, [])
    unpark(db, names["a"])
    assert len(finish(db, claim(db, kinds=["a"]))) == 1


def test_a_worker_that_serves_the_kind_does_not_end_an_approval(db: DB) -> None:
    """Also for a step that was parked before because nobody served it"""
    step, unserved, moved = start(db, "mail"), start(db, "print"), start(db, "print")
    claim(db, kinds=["other"], batch=5)
    assert [column(db, s, "parked_for") for s in (step, unserved, moved)] == ["handler"] * 3
    assert unpark(db, step, unserved, moved) == []

    assert park(db, step, unserved) == [step, unserved]

    assert [s.step_id for s in claim(db, "b", kinds=["mail", "print"], batch=5)] == [moved]
    assert unpark(db, step, unserved) == [step, unserved]
    assert [s.step_id for s in claim(db, "b", kinds=["mail", "print"], batch=5)] == [step, unserved]


def test_who_parked_a_step_and_why_is_noted_on_it(db: DB) -> None:
    step = start(db)
    login_name = value(db, "select session_user")
    park(db, step, reason="over budget", actor="ada")
    unpark(db, step)

    first, second = db.execute("select message, payload from holdfast.notes order by id").fetchall()

    assert first[1] == {"parked_for": "approval", "actor": "ada", "login": login_name, "reason": "over budget"}
    assert all(word in first[0] for word in ("approval", "ada", "over budget"))
    assert second[1] == {"actor": login_name}
    assert value(db, "select count(*) from holdfast.journal") == 0


def test_unparking_wakes_who_sleeps_on_the_queue(db: DB) -> None:
    step = start(db, queue="slow")
    park(db, step)
    claim(db, queue="slow")
    run(db, calls.mark_asleep("a", "slow"))
    db.execute("listen holdfast")

    unpark(db, step)

    assert hints(db) == ["slow"]


@pytest.mark.parametrize("own", ["handler", "move", "limit", ""])
def test_the_kernels_own_reasons_are_refused(db: DB, own: str) -> None:
    step = start(db)

    with pytest.raises(errors.BadInput) as caught:
        park(db, step, parked_for=own)

    assert "parked_for" in str(caught.value)
    assert step_row(db, step)["parked_for"] is None


def test_an_operator_parks_the_steps_of_its_tenants_only(db: DB, login: Login) -> None:
    mine, theirs = start(db, tenant="a"), start(db, tenant="b")
    operator = login("hf_operator", tenants=["a"])

    assert park(operator, mine, theirs) == [mine]
    assert park(db, theirs) == [theirs]
    assert unpark(operator, mine, theirs) == [mine]

"""Outcomes that say more than their kind: another policy, an ordinal, a retry that is not charged, a call's key."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from holdfast import Batch, Holdfast
from holdfast.models import Retry, Snooze
from holdfast.testing import Clock, drain
from kernel.steps import DB, claim_one, settle, start, value


def waits(db: DB, clock: Clock, *outcomes: Retry) -> list[float]:
    """Settle a task so again and again; in how many seconds it was due each time."""
    clock.freeze()
    clock.fix_chance(0.5)
    db.execute("insert into holdfast.kinds (kind, policy, queue) values ('mail', 'rules.target', 'default')")
    step_id = start(db)
    found = []
    for outcome in outcomes:
        settle(db, claim_one(db), outcome)
        due: float = value(db, "select extract(epoch from due_at - holdfast.clock()) from holdfast.steps where id = %s",
                           step_id)  # fmt: skip
        found.append(float(due))
        clock.advance(found[-1])
    return found


def test_a_retry_waits_by_the_policy_and_the_ordinal_that_it_names(db: DB, clock: Clock) -> None:
    """A-56: the first and second of their sort, between other failures."""
    limited = [Retry("429", policy="rules.429", ordinal=number) for number in (1, 2)]

    assert waits(db, clock, Retry("500"), *limited) == [2, 16, 32]


def test_a_policy_that_is_not_defined_is_passed_over(db: DB, clock: Clock) -> None:
    """The step's own decides then; an outcome must not fail its batch."""
    assert waits(db, clock, Retry("x", policy="nobody's"), Retry("x", ordinal=1)) == [2, 2]


def test_a_retry_that_is_not_charged_uses_no_try(db: DB, clock: Clock) -> None:
    """C-91, A-58: ten of them, and the budget of four is untouched."""
    free = [Retry("429", policy="rules.429", ordinal=number, is_charged=False) for number in range(1, 11)]

    assert waits(db, clock, *free)[:4] == [16, 32, 64, 64]
    assert value(db, "select failures from holdfast.steps") == 0
    assert value(db, "select count(*) from holdfast.journal where event = 'retried'") == 10


@pytest.mark.parametrize(
    "more",
    [{"ordinal": 0}, {"ordinal": "x"}, {"ordinal": 10**7}, {"policy": 7}, {"is_charged": "no"},
     {"call_key": 7}, {"call_key": "k" * 401}],
    ids=str,
)  # fmt: skip
def test_an_outcome_that_makes_no_sense_is_refused(db: DB, more: dict[str, Any]) -> None:
    start(db)
    step = claim_one(db)
    given = {"step_id": step.step_id, "lease_id": step.lease_id, "outcome": "retry", **more}
    with pytest.raises(psycopg.Error) as refused, db.transaction():
        db.execute("select holdfast.settle_steps(%s)", [Jsonb([given])])
    assert refused.value.sqlstate == "RN005"


@pytest.mark.one_server
def test_steps_with_the_same_call_key_form_a_call_of_their_own(dsn: str, db: DB) -> None:
    """Two halves of a call, without a delay; nothing is charged."""
    hf = Holdfast(dsn)
    seen: list[list[int]] = []

    @hf.task(batch=8)
    def push(batch: Batch, items: list[dict[str, int]]) -> list[Any]:
        seen.append([item["n"] for item in items])
        if len(items) == 8:
            return [Snooze(0, call_key=f"half {item['n'] // 4}") for item in items]
        return [None] * len(items)

    push.start_many([{"n": number} for number in range(8)])
    drain(hf)
    hf.close()

    assert sorted(map(sorted, seen)) == [[0, 1, 2, 3], list(range(8)), [4, 5, 6, 7]]
    assert value(db, "select max(failures) from holdfast.steps") == 0


@pytest.mark.one_server
@pytest.mark.parametrize(
    "outcome",
    [Retry("x", ordinal=0), Retry("x", policy="a\nb"), Snooze(0, call_key="k" * 401)],
    ids=["ordinal", "policy", "call_key"],
)
def test_a_handler_that_returns_nonsense_fails_its_own_step_only(dsn: str, db: DB, outcome: Any) -> None:
    hf = Holdfast(dsn)

    @hf.task
    def odd() -> Any:
        return outcome

    odd.start()
    drain(hf)
    hf.close()
    assert value(db, "select error ->> 'type' from holdfast.steps") == "OutcomeRefused"

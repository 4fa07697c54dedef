"""A face keeps counters by its machine's function `moved`, whichever path moved the rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import Holdfast, errors
from holdfast.faces import Face
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Outcome, Release, Retry
from holdfast.testing import Clock
from kernel.steps import claim, rescue, seconds, settlement, stage, value, violations
from shape.test_toy_face import hf, toy

pytestmark = pytest.mark.one_server

__all__ = ["hf", "toy"]
DB = Connection[Any]
OUTCOMES: list[Outcome] = [Done(), Retry("e", after=seconds(1)), Fail("e"), Release()]
COUNTED = "select subject, list_id, state, rows from toy.counts where rows <> 0 order by 1, 2, 3"
ROWS = """
select 'list', id::text, state, count(*) from holdfast.runs where machine = 'toy.list' group by id, state
 union all
select 'wish', coalesce(run_id::text, ''), state, count(*) from holdfast.steps where machine = 'toy.wish'
 group by run_id, state
 order by 1, 2, 3
"""
BY_HAND = """
update holdfast.steps set state = 'dropped', due_at = null, finished_at = holdfast.clock()
 where id in (select id from holdfast.steps where state = 'hoped' order by id desc limit 2)
"""


class Player:
    """Moves lists and wishes about at random."""

    def __init__(self, hf: Holdfast, db: DB, clock: Clock, random: Random) -> None:
        self.toys, self.db, self.clock, self.random = hf.face("toy"), db, clock, random
        self.held: list[ClaimedStep] = []

    def acts(self) -> list[Callable[[], None]]:
        """List what may happen next, each once, in some order."""
        acts = [self.start, self.start_one, self.stage, self.claim, self.settle, self.expire, self.by_hand, self.wish]
        return self.random.sample(acts, len(acts))

    def start(self) -> None:
        self.toys.start("ann", ["pony"] * self.random.randint(1, 4))

    def start_one(self) -> None:
        run(self.db, calls.start_step("toy.wish", "pony", priority=self.random.randint(0, 2)))

    def stage(self) -> None:
        stage(self.db, [("pony", "{}")] * 3, machine="toy.wish")

    def claim(self) -> None:
        self.clock.advance(seconds(2))
        self.held += claim(self.db, batch=self.random.randint(1, 6))

    def settle(self) -> None:
        outcomes = self.random.sample(OUTCOMES, len(OUTCOMES))
        run(self.db, calls.settle_steps(map(settlement, self.held[-4:], outcomes)))

    def expire(self) -> None:
        self.clock.advance(seconds(31))
        rescue(self.db)

    def by_hand(self) -> None:
        self.db.execute(BY_HAND)

    def wish(self) -> None:
        subject = value(
            self.db,
            "select s from (select id::text s from holdfast.steps union all select id::text from holdfast.runs) u"
            " order by md5(s || %s) limit 1",
            str(self.random.random()),
        )
        with suppress(errors.WrongState):  # over already, or nothing to retry
            run(self.db, self.random.choice([calls.cancel, calls.retry])(subject))


@pytest.mark.parametrize("seed", range(2))
def test_counters_kept_by_moves_are_what_the_rows_say(hf: Holdfast, db: DB, clock: Clock, seed: int) -> None:
    clock.freeze()
    player = Player(hf, db, clock, Random(seed))
    player.start()

    for act in (act for _ in range(12) for act in player.acts()):
        act()
        assert db.execute(COUNTED).fetchall() == db.execute(ROWS).fetchall()

    assert violations(db) == []
    seen = value(db, "select array_agg(distinct event order by event) from holdfast.journal where machine = 'toy.wish'")
    assert {"by_hand", "cancelled", "claimed", "expired", "failed", "released", "reopened", "retried"} <= set(seen)


def test_an_error_of_the_function_undoes_the_move(hf: Holdfast, db: DB, toy: Face) -> None:
    hf.face("toy").start("ann", ["pony"])
    db.execute("alter table toy.counts add constraint no_claims check (state <> 'heard')")

    with pytest.raises(psycopg.errors.CheckViolation):
        db.execute("select holdfast.claim_steps('w')")

    assert value(db, "select array_agg(state) from holdfast.steps") == ["hoped"]
    assert db.execute(COUNTED).fetchall() == db.execute(ROWS).fetchall()

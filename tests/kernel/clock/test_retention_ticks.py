"""Ticks of schedules go after 30 days, but those that the next tick has to know of stay."""

from __future__ import annotations

from holdfast.testing import Clock
from kernel.retention import days, keep, sweep
from kernel.steps import DB, value

DEFINE = "select holdfast.define_schedule('report', 'mail', every => '1 hour')"
TICK = """
insert into holdfast.ticks (tenant, name, at, due_at, fired_at, cause, outcome, face, ids, actor)
select 'default', %(name)s, c.now, c.now, c.now, 'clock', %(outcome)s, 'work',
       case when %(outcome)s = 'started' then array['7'] else '{}'::text[] end, 'scheduler'
  from (select holdfast.clock() as now) c
"""


def tick(db: DB, clock: Clock, outcome: str = "started", name: str = "report") -> None:
    clock.advance(1)
    db.execute(TICK, {"name": name, "outcome": outcome})


def ticks(db: DB) -> int:
    count: int = value(db, "select count(*) from holdfast.ticks")
    return count


def test_ticks_go_after_thirty_days_in_chunks(db: DB, clock: Clock) -> None:
    """X-16: of a schedule that is there all but the last ten that started something, of one that is gone all."""
    clock.freeze()
    db.execute(DEFINE)
    for _ in range(12):
        tick(db, clock)
    for _ in range(3):
        tick(db, clock, "skipped")
        tick(db, clock, name="forgotten")
    clock.advance(days(29))
    assert sweep(db).ticks == 0

    clock.advance(days(2))

    assert sweep(db, batch=2).ticks == 2 + 3 + 3
    assert ticks(db) == 10


def test_a_rule_keeps_ticks_longer(db: DB, clock: Clock) -> None:
    tick(db, clock, name="forgotten")
    keep(db, None, what="ticks")
    clock.advance(days(300))
    assert sweep(db).ticks == 0

    keep(db, days(1), what="ticks")
    assert sweep(db).ticks == 1

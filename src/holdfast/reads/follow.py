"""Follows a run or a step until it ends: its state at once, and again with each change."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from holdfast.errors import WaitTimedOut
from holdfast.kernel.query import Query, query
from holdfast.reads import run_detail
from holdfast.reads.run_detail import RunDetail, StepDetail

SOONEST, LATEST = 0.2, 2.0  # seconds between two reads, growing while nothing happens
MOST_STEPS = 200  # the most steps of a run that are followed one by one

# The last progress of the current attempt. Anybody may write a note, so only numbers count.
STEPS: LiteralString = """
select s.id::text, coalesce(m.name, s.kind) as name, s.state, s.phase, s.outcome, s.standing, s.attempt,
       left(holdfast.error_text(s.error), 300) as error, p.done, p.total
  from unnest(%(ids)s::bigint[]) u (id)
 cross join lateral (select * from holdfast.step_list l where l.id = u.id offset 0) s
  left join holdfast.run_steps m on m.run_id = s.run_id and m.step_id = s.id
  left join lateral (
    select case when jsonb_typeof(n.payload -> 'done') = 'number' then (n.payload ->> 'done')::float8 end as done,
           case when jsonb_typeof(n.payload -> 'total') = 'number' then (n.payload ->> 'total')::float8 end as total
      from holdfast.notes n
     where n.step_id = s.id and n.message = 'progress' and n.attempt = s.attempt and s.finished_at is null
     order by n.id desc
     limit 1) p on true
 order by s.id
"""
STEPS_OF_RUN: LiteralString = """
select m.step_id from holdfast.run_steps m where m.run_id = %(run)s order by m.step_id limit %(limit)s
"""


@dataclass(frozen=True, slots=True)
class StepGlance:
    """The state of one step of a run; `done` of `total` is its handler's last ctx.progress."""

    id: str
    name: str
    state: str
    phase: str | None
    outcome: str | None
    standing: str
    attempt: int
    error: str | None
    done: float | None
    total: float | None


@dataclass(frozen=True, slots=True)
class Glance:
    """The state of a run or a step, as a follower sees it."""

    id: str
    what: str
    name: str
    state: str
    phase: str | None
    outcome: str | None
    is_over: bool
    attempt: int | None
    total: int | None = None
    live: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    cancelled: int | None = None
    done: float | None = None  # the step's last ctx.progress
    done_of: float | None = None
    steps: tuple[StepGlance, ...] = ()  # of a run, if requested and not too many

    @property
    def is_partial(self) -> bool:
        """Whether it ended with both succeeded and failed steps."""
        has_both = bool(self.succeeded and self.failed) and self.outcome != "succeeded"
        return self.is_over and (self.outcome == "partial" or has_both)


def glance(connection: Connection[Any], id: int | UUID, *, with_steps: bool = False) -> Glance:  # noqa: A002
    """Read the state once; for a run also its steps, if requested and not too many."""
    if isinstance(id, int):
        seen = of_step(run_detail.step(connection, id))
        rows = steps(connection, [id])
        return replace(seen, done=rows[0].done, done_of=rows[0].total) if rows else seen
    seen = of_run(run_detail.run(connection, id))
    if not with_steps or (seen.total or 0) > MOST_STEPS:
        return seen
    ids = query(connection, Query(STEPS_OF_RUN, int, {"run": id, "limit": MOST_STEPS}))
    return replace(seen, steps=tuple(steps(connection, ids)))


def steps(connection: Connection[Any], ids: Sequence[int]) -> list[StepGlance]:
    """Read the state of some steps."""
    return query(connection, Query(STEPS, StepGlance, {"ids": list(ids)}))


def of_step(step: StepDetail) -> Glance:
    """Return a step as a follower sees it."""
    is_over = step.finished_at is not None
    return Glance(step.id, step.what, step.kind, step.state, step.phase, step.outcome, is_over, step.attempt)


def of_run(run: RunDetail) -> Glance:
    """Return a run as a follower sees it; a run whose steps are still being moved has not ended."""
    is_over = run.finished_at is not None and run.moving is None
    outcome = run.outcome if is_over else None
    counts = (run.total, run.live, run.succeeded, run.failed, run.cancelled)
    return Glance(run.id, run.what, run.name, run.state, run.phase, outcome, is_over, None, *counts)


def changes(
    connection: Connection[Any],
    id: int | UUID,  # noqa: A002 - the word is the same in SQL
    timeout: timedelta | None,
    *,
    with_steps: bool = False,
) -> Iterator[Glance]:
    """Yield the state, and again with each change until it ends."""
    end = None if timeout is None else time.monotonic() + timeout.total_seconds()
    last = glance(connection, id, with_steps=with_steps)
    yield last
    pause = SOONEST
    while not last.is_over:
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            raise WaitTimedOut(
                f"{last.what} {last.id} has not ended, it is {last.state}",
                where=last.id,
                next=(f"it continues: watch it longer, or stop it with `holdfast runs cancel {last.id}`"),
            )
        time.sleep(pause if left is None else min(pause, left))
        now = glance(connection, id, with_steps=with_steps)
        pause = SOONEST if now != last else min(pause * 1.5, LATEST)
        if now != last:
            yield now
        last = now

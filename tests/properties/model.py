"""The engine as the documents describe it, in plain Python: the oracle that the SQL is held against.

It reads no database; what only a database can know (ids, lease numbers) is handed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, assert_never
from uuid import UUID

from holdfast import errors
from holdfast.models import Continue, Done, Fail, Outcome, Release, Retry, Settlement, Snooze
from properties.documents import ENDS, HELD, KINDS, LONG_SILENT, MOVES
from properties.subjects import Actor, Lease, Run, Step

RESCUE, CATCH_UP = Actor("system", "rescue"), Actor("system", "by_hand")

WISHES = {"cancel": "cancelled", "retry": "reopened", "resolve": "resolved"}


class Settled(NamedTuple):
    step_id: int
    event: str
    state: str


class Model:
    """All steps and runs of one database, and what each call does to them."""

    def __init__(self, now: datetime, login: str) -> None:
        self.now = now
        self.user = Actor("user", login)
        self.steps: dict[int, Step] = {}
        self.runs: dict[UUID, Run] = {}
        self.paused: dict[str, bool] = {}
        self.keys: dict[str, tuple[Any, Any]] = {}  # key: what was asked for, and what it started
        self.newest_lease = 0

    # Starts. `new` is the id that the database gave, and is used if something new was to be made.

    def start_task(self, new: int, kind: str, content: Any, *, key: str | None, **options: Any) -> int:
        if key in self.keys:
            return self._known(key, (kind, content))
        queue = options.pop("queue") or KINDS[kind].queue
        self.paused.setdefault(queue, False)
        twin = self.open_twin(options["unique_key"])
        if key is not None:
            self.keys[key] = (kind, content), new if twin is None else twin.id
        if twin is not None:
            return twin.id
        self.steps[new] = Step(new, "work.task", "pending", kind, queue, **options)
        return new

    def start_ops(self, new: int, kind: str, **options: Any) -> None:
        self.paused.setdefault("default", False)
        self.steps[new] = Step(new, "ops.run", "queued", kind, "default", **options)

    def start_run(self, new: UUID, plan: Sequence[dict[str, Any]], ids: Sequence[int], *, key: str | None) -> UUID:
        if key in self.keys:
            return self._known(key, plan)
        if key is not None:
            self.keys[key] = plan, new
        run = self.runs[new] = Run(new)
        run.story.append(("created", "api"))
        ids_by_name = dict(zip((part["name"] for part in plan), ids, strict=True))
        for step_id, part in zip(ids, plan, strict=True):
            queue = KINDS[part["kind"]].queue
            self.paused.setdefault(queue, False)
            step = Step(step_id, "flow.step", "pending", part["kind"], queue, priority=part["priority"], run=new)
            step.waits = len(part["after"])
            step.due = None if part["after"] else self.now
            run.steps.append(step)
            self.steps[step_id] = step
        for step, part in zip(run.steps, plan, strict=True):
            for parent in part["after"]:
                self.steps[ids_by_name[parent]].children.append(step)
        return new

    def open_twin(self, unique_key: str | None) -> Step | None:
        """Find the open step that holds a unique key."""
        if unique_key is None:
            return None
        return next((s for s in self.open() if s.unique_key == unique_key), None)

    # Workers.

    def open(self) -> list[Step]:
        return [s for s in self.steps.values() if s.finished_at is None]

    def due(self) -> list[Step]:
        return [s for s in self.steps.values() if s.due is not None and s.due <= self.now]

    def due_for(self, queue: str, kinds: Sequence[str] | None) -> list[Step]:
        """List what a worker may take, in the order in which it is given out."""
        if self.paused[queue]:
            return []
        served = [s for s in self.due() if s.queue == queue and (kinds is None or s.kind in kinds)]
        return sorted(served, key=lambda s: (-s.priority, s.due, s.id))

    def dead(self) -> list[Step]:
        return [s for s in self.steps.values() if s.finished_at is not None and ENDS[s.state] == "failed"]

    def held(self) -> list[Step]:
        return [s for s in self.steps.values() if s.lease is not None]

    def next_moment(self) -> datetime | None:
        """Say when the next step is due or the next lease over."""
        moments = [s.due for s in self.steps.values() if s.due] + [s.lease.until for s in self.held() if s.lease]
        return min((moment for moment in moments if moment >= self.now), default=None)

    def claim(self, step: Step, lease_id: int, worker: str, lease: timedelta | None) -> None:
        by = Actor("worker", worker)
        assert lease_id > self.newest_lease, f"lease {lease_id} was given out before"
        self.newest_lease = lease_id
        if step.can("reopened"):  # it failed before, and is tried again
            step.tell("reopened", by)
        step.due = None
        step.attempt += 1
        step.lease = Lease(lease_id, worker, self.now + step.span(lease))
        step.tell("claimed", by)
        if step.run is not None and self.runs[step.run].can("started"):
            self._move_run(self.runs[step.run], "started", by)

    def renew(self, worker: str, lease_ids: Iterable[int], lease: timedelta | None) -> set[int]:
        held = {s.lease.id: s for s in self.steps.values() if s.lease is not None and s.lease.owner == worker}
        renewed = held.keys() & set(lease_ids)
        for lease_id in renewed:
            held[lease_id].lease = Lease(lease_id, worker, self.now + held[lease_id].span(lease))
        return renewed

    def note(self, step_id: int, lease_id: int, level: str) -> None:
        step, owner = self._held(step_id, lease_id)
        if step is None:
            raise errors.LeaseLost
        if step.can("started"):
            step.tell("started", owner)
        step.notes.append(level)

    def settle(self, settlements: Iterable[Settlement]) -> set[Settled]:
        settled = set()
        for settlement in settlements:
            step, owner = self._held(settlement.step_id, settlement.lease_id)
            if step is None or self._is_elsewhere(step, settlement.outcome):
                continue
            event, due = self._event_of(step, settlement.outcome)
            if not step.can(event) and step.can("started", event):
                step.tell("started", owner)
            if not step.can(event):
                step.notes.append("error")
                continue
            self._move(step, event, owner, due=due)
            self._keep(step, settlement.outcome)
            settled.add(Settled(step.id, event, step.state))
        self._close_runs(Actor("worker", "whoever settles"))
        return settled

    def silent(self) -> list[Step]:
        """List the steps whose lease ran out, the longest silent first."""
        held = [(s.lease.until, s.id) for s in self.steps.values() if s.lease is not None and s.lease.until < self.now]
        return [self.steps[step_id] for _, step_id in sorted(held)]

    def rescue(self, step: Step) -> Settled:
        ends_it = MOVES[step.machine][step.state, "expired"] == "cancelled"
        event = "failed" if step.is_on_its_last_try and not ends_it else "expired"
        self._move(step, event, RESCUE, due=self.now + step.backoff())
        step.error = "LeaseExpired"
        self._close_runs(RESCUE)
        return Settled(step.id, event, step.state)

    # People.

    def act_on_step(self, step: Step, wish: str) -> str:
        event = WISHES[wish]
        if not step.can(event):
            raise errors.WrongState
        if event == "reopened" and self.open_twin(step.unique_key) not in {None, step}:
            raise errors.KeyConflict
        if step.run is not None and event != "cancelled":
            self._reopen(self.runs[step.run])
        self._move(step, event, self.user, due=self.now)
        self._close_runs(self.user)
        return step.state

    def act_on_run(self, run: Run, wish: str) -> str:
        event = WISHES[wish]
        if not run.can(event) or (event == "reopened" and not any(s.can("reopened") for s in run.steps)):
            raise errors.WrongState
        run.move(event, self.user, now=self.now)
        followed_by = {
            "cancelled": [s for s in run.steps if s.finished_at is None],
            "reopened": [s for s in run.steps if s.can("reopened")],
            "resolved": [],
        }
        for step in followed_by[event]:
            self._move(step, event, self.user, due=self.now)
        self._close_runs(self.user)
        return run.state

    def ways_by_hand(self, step: Step) -> list[str]:
        """Where a person may put it: not into a worker's hands before its time, nor to life where that cannot be."""
        ways = {after for (before, _), after in MOVES[step.machine].items() if before == step.state}
        run = self.runs.get(step.run) if step.run else None
        if (run and run.finished_at and not run.can("reopened")) or self.open_twin(step.unique_key) not in {None, step}:
            ways &= ENDS.keys()
        return sorted(ways - HELD if step.waits else ways)

    def by_hand(self, step: Step, state: str, *, lease: Lease, rests: bool) -> None:
        step.set_by_hand(state, self.user, now=self.now, lease=lease, rests=rests)
        self._free_children(step)
        self._close_runs(CATCH_UP)
        for run in self.runs.values():
            if run.finished_at is not None and any(s.is_live for s in run.steps):
                run.move("reopened", CATCH_UP, now=self.now)

    def set_paused(self, queue: str, *, paused: bool) -> None:
        if queue not in self.paused:
            raise errors.NotFound
        self.paused[queue] = paused

    def violations(self) -> set[tuple[str, str]]:
        """List what `holdfast.violations()` must list, and nothing else: leases that nobody took back for long."""
        long_ago = self.now - LONG_SILENT
        return {("lease_was_rescued", f"step {s.id}") for s in self.silent() if s.lease and s.lease.until < long_ago}

    # What hangs on a move.

    def _move(self, step: Step, event: str, by: Actor, *, due: datetime) -> None:
        step.move(event, by, now=self.now, due=due)
        self._free_children(step)

    def _free_children(self, parent: Step) -> None:
        if parent.finished_at is None or ENDS[parent.state] != "succeeded":
            return
        for child in parent.children:
            child.waits -= 1
            if child.waits == 0 and child.finished_at is None:
                child.due = self.now

    def _close_runs(self, by: Actor) -> None:
        for run in self.runs.values():
            if run.has_stopped:
                self._move_run(run, run.closing_event(), by)

    def _move_run(self, run: Run, event: str, by: Actor) -> None:
        if not run.can(event):
            run.move("started", by, now=self.now)
        run.move(event, by, now=self.now)

    def _reopen(self, run: Run) -> None:
        if run.finished_at is None:
            return
        if not run.can("reopened"):
            raise errors.WrongState
        run.move("reopened", self.user, now=self.now)

    # Reading an outcome.

    def _held(self, step_id: int, lease_id: int) -> tuple[Step | None, Actor]:
        step = self.steps[step_id]
        if step.lease is None or step.lease.id != lease_id:
            return None, Actor("worker", "nobody")
        return step, Actor("worker", step.lease.owner)

    def _is_elsewhere(self, step: Step, outcome: Outcome) -> bool:
        return isinstance(outcome, Continue) and outcome.was != step.cursor

    def _event_of(self, step: Step, outcome: Outcome) -> tuple[str, datetime]:
        match outcome:
            case Done():
                return "succeeded", self.now
            case Retry(after=after):
                wait = step.backoff() if after is None else min(after, step.policy.longest_retry_after)
                return "failed" if step.is_on_its_last_try else "retried", self.now + wait
            case Fail():
                return "failed", self.now
            case Snooze(after):
                return "snoozed", self.now + after
            case Continue():
                return "continued", self.now
            case Release():  # a machine without that move ends the step instead
                return "released" if step.can("released") else "cancelled", self.now
            case other:
                assert_never(other)

    def _keep(self, step: Step, outcome: Outcome) -> None:
        match outcome:
            case Done(result):
                step.result, step.error = result, None
            case Retry(error=error) | Fail(error=error):
                step.error = error and error["type"]
            case Continue(cursor):
                step.cursor = cursor

    def _known(self, key: str | None, asked: Any) -> Any:
        before, started = self.keys[key or ""]
        if before != asked:
            raise errors.KeyConflict
        return started

"""A step and a run of the model: what they are, and what one move does to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from properties.documents import DEFAULT_LEASE, ENDS, FAULTS, HELD, KINDS, MOVES, POLICIES, Policy


class Actor(NamedTuple):
    kind: str
    name: str


class Lease(NamedTuple):
    id: int
    owner: str
    until: datetime


class Told(NamedTuple):
    """A line of a step's journal."""

    event: str
    actor_kind: str
    actor: str
    attempt: int
    lease_id: int | None


@dataclass(eq=False)
class Step:
    id: int
    machine: str
    state: str
    kind: str
    queue: str
    priority: int = 0
    due: datetime | None = None
    run: UUID | None = None
    unique_key: str | None = None
    waits: int = 0
    children: list[Step] = field(default_factory=list, repr=False)
    lease: Lease | None = None
    finished_at: datetime | None = None
    attempt: int = 0
    failures: int = 0
    cursor: Any = None
    result: Any = None
    error: str | None = None
    story: list[Told] = field(default_factory=list, repr=False)
    notes: list[str] = field(default_factory=list)

    @property
    def is_live(self) -> bool:
        return self.finished_at is None and (self.due is not None or self.lease is not None)

    @property
    def may_rest(self) -> bool:
        """Whether its state leaves open if it is tried again."""
        return self.machine == "flow.step" and self.state == "error"

    @property
    def policy(self) -> Policy:
        return POLICIES[KINDS[self.kind].policy or self.machine]

    @property
    def is_on_its_last_try(self) -> bool:
        return self.failures + 1 >= self.policy.tries

    def backoff(self) -> timedelta:
        return timedelta(seconds=self.policy.wait(self.failures + 1))

    def span(self, asked: timedelta | None) -> timedelta:
        """Say how long a lease on it lasts."""
        return asked or KINDS[self.kind].lease or DEFAULT_LEASE

    def can(self, *events: str) -> bool:
        """Whether its machine lists these events, one after the other, from where it is."""
        state: str | None = self.state
        for event in events:
            state = MOVES[self.machine].get((state or "", event))
        return state is not None

    def tell(self, event: str, by: Actor) -> None:
        """Make a move that touches nothing but the state."""
        self.state = MOVES[self.machine][self.state, event]
        self.story.append(Told(event, *by, self.attempt, self.lease and self.lease.id))

    def move(self, event: str, by: Actor, *, now: datetime, due: datetime | None) -> None:
        """Make a move out of a worker's hands, or of one that waits: `due` counts if it may then be claimed."""
        self.tell(event, by)
        is_over = self.state in ENDS and not (self.may_rest and event in {"retried", "expired"})
        self.lease = None
        self.finished_at = now if is_over else None
        self.due = due if not is_over and self.waits == 0 else None
        if event in FAULTS:
            self.failures += 1
        elif event in {"continued", "reopened"}:
            self.failures = 0

    def set_by_hand(self, state: str, user: Actor, *, now: datetime, lease: Lease, rests: bool) -> None:
        """Take a state, and the columns that go with it, from a plain UPDATE."""
        had = self.lease
        self.state = state
        is_over = state in ENDS and not (rests and self.may_rest)
        self.lease = lease if state in HELD else None
        self.finished_at = now if is_over else None
        self.due = now if not is_over and self.lease is None and self.waits == 0 else None
        named = had or self.lease
        self.story.append(Told("by_hand", *user, self.attempt, named and named.id))

    def told(self) -> tuple[list[Any], list[list[Any]], list[list[str]]]:
        """Write down row, journal and notes as the tables have them."""
        row = [
            self.machine, self.state, self.kind, self.queue, self.priority, self.run, self.waits, self.due,
            *(self.lease or (None, None, None)), self.attempt, self.failures, self.cursor, self.result, self.error,
            self.finished_at,
        ]  # fmt: skip
        return row, [list(line) for line in self.story], [[level] for level in self.notes]


@dataclass(eq=False)
class Run:
    id: UUID
    steps: list[Step] = field(default_factory=list)
    state: str = "pending"
    finished_at: datetime | None = None
    story: list[tuple[str, str]] = field(default_factory=list)

    def can(self, event: str) -> bool:
        return (self.state, event) in MOVES["flow.task"]

    def move(self, event: str, by: Actor, *, now: datetime) -> None:
        self.state = MOVES["flow.task"][self.state, event]
        self.finished_at = now if self.state in ENDS else None
        self.story.append((event, by.kind))

    @property
    def has_stopped(self) -> bool:
        """Whether it should be over: it has steps, and none of them is live."""
        return self.finished_at is None and bool(self.steps) and not any(s.is_live for s in self.steps)

    def counts(self) -> tuple[int, int, int, int, int]:
        """Total, live, succeeded, failed, cancelled."""
        ends = [ENDS[s.state] for s in self.steps if s.finished_at is not None]
        live = sum(s.is_live for s in self.steps)
        return len(self.steps), live, ends.count("succeeded"), ends.count("failed"), ends.count("cancelled")

    def closing_event(self) -> str:
        total, _, succeeded, failed, cancelled = self.counts()
        if total > succeeded + failed + cancelled:
            return "blocked"
        if succeeded == total:
            return "all_succeeded"
        return "some_failed" if succeeded else "none_succeeded"

    def told(self) -> tuple[list[Any], list[list[str]]]:
        """Write down row and journal as the tables have them."""
        return [self.state, *self.counts(), self.finished_at], [list(line) for line in self.story]

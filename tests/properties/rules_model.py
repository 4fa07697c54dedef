"""Rule runs as document 000 draws them, and a shop that keeps a log: the oracle of test_rules.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

LEASE = timedelta(seconds=30)
TRIES = 4
OPEN = ("QUEUED", "APPLYING")


@dataclass
class Shop:
    """Prices by item. Every write is logged with the target that made it; an edit by hand has none."""

    prices: dict[str, int]
    log: list[tuple[str, int, int | None]] = field(default_factory=list)
    last: int = 10_000  # no price is ever used twice, so that a price tells who wrote it

    def fresh(self) -> int:
        self.last += 1
        return self.last

    def edit(self, item: str) -> None:
        self.set(item, self.fresh(), None)

    def set(self, item: str, price: int, target: int | None) -> None:
        self.prices[item] = price
        self.log.append((item, price, target))


@dataclass
class Target:
    id: int
    item: str
    before: int
    after: int
    state: str = "PREVIEW"
    is_included: bool = True
    is_live: bool = False  # due, backing off or held
    due_at: datetime | None = None
    lease_until: datetime | None = None
    lease_id: int | None = None
    is_alone: bool = False  # since a lease of it ran out: it shares no call
    failures: int = 0
    reason: str | None = None
    is_unknown: bool = False  # nobody knows whether the last try wrote it

    def queue(self, now: datetime) -> None:
        self.state, self.is_live, self.due_at = "QUEUED", True, now

    def claim(self, now: datetime, lease_id: int) -> None:
        self.state, self.due_at, self.lease_until, self.lease_id = "APPLYING", None, now + LEASE, lease_id

    def succeed(self) -> None:
        self.state, self.is_live, self.lease_until, self.lease_id = "APPLIED", False, None, None

    def fail(self, reason: str | None) -> None:
        self.failures += 1
        self.state, self.is_live, self.lease_until, self.lease_id = "FAILED", False, None, None
        self.reason = reason

    def retry(self, due_at: datetime) -> None:
        if self.failures + 1 >= TRIES:
            self.fail(None)
            return
        self.failures += 1
        self.state, self.lease_until, self.lease_id, self.due_at = "QUEUED", None, None, due_at

    def reopen(self, now: datetime) -> None:
        self.failures, self.reason = 0, None
        self.queue(now)


@dataclass
class Run:
    targets: list[Target]
    state: str = "PREVIEW"
    halt: str | None = None
    undoes: UUID | None = None
    planned: tuple[int, int] = (0, 0)  # how much of what it undoes was applied and rolled back when it was planned
    is_settling: bool = False  # it is open only to read unknown outcomes

    @property
    def included(self) -> list[Target]:
        return [target for target in self.targets if target.is_included]

    @property
    def items(self) -> set[str]:
        return {target.item for target in self.included}

    @property
    def progress(self) -> tuple[int, int]:
        """How many were applied, and how many of them rolled back."""
        states = [target.state for target in self.included]
        undone = states.count("ROLLED_BACK")
        return states.count("APPLIED") + undone, undone

    @property
    def unknown(self) -> list[Target]:
        return [target for target in self.included if target.is_unknown and target.state in ("FAILED", "QUEUED")]

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def waiting(self) -> list[Target]:
        """What was not admitted yet and will be."""
        return [t for t in self.included if t.state == "PREVIEW" and self.is_open and self.halt != "stopped"]

    def stop(self) -> None:
        self.halt = "stopped"
        self.drop_due()

    def drop_due(self) -> None:
        """Of a stopped run nothing becomes due any more."""
        for target in self.targets:
            if target.state == "QUEUED":
                target.is_live, target.due_at = False, None

    def close(self) -> None:
        """Close it by what was applied, when nothing is left to do."""
        if self.halt == "stopped":
            self.drop_due()
        if not self.is_open or self.waiting or any(target.is_live for target in self.targets):
            return
        self.is_settling = False
        applied, _ = self.progress
        self.state = "APPLIED" if applied == len(self.included) else "PARTIAL" if applied else "FAILED"

"""Document 002's diagram as its clashes are resolved: the oracle of test_ops.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

LEASE = timedelta(minutes=5)
WINDOW = timedelta(seconds=10)
ENDS = ("success", "failed", "cancelled")


class Refused(Exception):
    """A call that is refused, with its SQLSTATE."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Run:
    queued_at: datetime
    status: str = "queued"
    worker: str | None = None
    started_at: datetime | None = None
    leased_until: datetime | None = None
    told: list[str] = field(default_factory=lambda: ["Run queued"])  # the messages of its events, in order
    notes: list[tuple[str, str, datetime]] = field(default_factory=list)  # level, message, when
    keys: set[str] = field(default_factory=set)
    reason: str | None = None

    @property
    def is_over(self) -> bool:
        return self.status in ENDS

    @property
    def is_held(self) -> bool:
        return self.status in ("claimed", "running")

    def claim(self, worker: str, now: datetime) -> None:
        self.status, self.worker, self.started_at, self.leased_until = "claimed", worker, now, now + LEASE
        self.told.append("Run claimed by worker")

    def append(self, level: str, message: str, key: str | None, now: datetime) -> bool:
        """Append an event, and give whether it is new."""
        recent = {(lvl, msg) for lvl, msg, at in self.notes if now - at < WINDOW}
        is_new = key not in self.keys if key is not None else (level, message) not in recent
        if self.is_over:
            if is_new:
                raise Refused("RN010")
            return False
        if self.is_held:
            self.start()
            self.renew(now)
        if is_new:
            self.told.append(message)
            self.notes.append((level, message, now))
            self.keys |= {key} if key is not None else set()
        return is_new

    def start(self) -> None:
        if self.status == "claimed":
            self.status = "running"
            self.told.append("Run started")

    def renew(self, now: datetime) -> None:
        assert self.leased_until is not None
        if self.leased_until < now + LEASE * 2 / 3:
            self.leased_until = now + LEASE

    def check_worker(self, worker: str | None) -> None:
        if worker is not None and worker != self.worker:
            raise Refused("RN002")

    def heartbeat(self, worker: str | None, now: datetime) -> bool:
        self.check_worker(worker)
        if self.status == "queued":
            raise Refused("RN010")
        if self.is_held:
            self.renew(now)
        return self.is_held

    def finish(self, status: str, worker: str | None) -> None:
        self.check_worker(worker)
        if self.status == status:
            return
        if self.is_over or (self.status == "queued" and status != "cancelled"):
            raise Refused("RN010")
        if status != "cancelled":
            self.start()
        self.end(status)

    def cancel(self) -> None:
        if self.status == "cancelled":
            return
        if self.is_over:
            raise Refused("RN010")
        self.end("cancelled")

    def end(self, status: str, reason: str | None = None) -> None:
        self.status, self.leased_until = status, None
        self.reason = reason or self.reason
        self.told.append(f"Run finished: {status}")

    def is_stale(self, now: datetime) -> bool:
        assert not self.is_held or self.started_at is not None
        return (self.status == "claimed" and self.started_at < now - LEASE) or self.is_expired(now)  # type: ignore[operator]

    def is_expired(self, now: datetime) -> bool:
        return self.leased_until is not None and self.leased_until < now

    def give_up(self) -> None:
        """End as the monitor and the kernel's rescue end it, with the document's reasons."""
        words = "running without heartbeat" if self.status == "running" else "claimed for >5 minutes without events"
        self.end("cancelled", f"Stale run ({words})")

"""The options of a worker, from its command line and HOLDFAST_*, checked once."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass, field
from datetime import timedelta


def new_identity(name: str | None = None, *, group: str | None = None) -> str:
    """Return a worker's name, which is new for each start: a restarted process holds none of its old leases.

    Processes of one supervisor share a `group`, so that they do not report each other as a name conflict.
    """
    start = uuid.uuid4().hex[:8]
    return f"{name or f'{socket.gethostname()}:{os.getpid()}'}/{start if group is None else f'{group}.{start}'}"


def strangers(identity: str, others: list[str]) -> list[str]:
    """Return the other workers that are not of the same group."""
    name, _, start = identity.rpartition("/")
    group, dot, _ = start.rpartition(".")
    return [other for other in others if not dot or not other.startswith(f"{name}/{group}.")]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a worker."""

    identity: str = field(default_factory=new_identity)
    queues: tuple[str, ...] = ("default",)
    tenants: tuple[str, ...] | None = None
    concurrency: int = 10
    burst: bool = False
    listens: bool = True
    largest_batch: int = 500
    lease: timedelta | None = None
    recovery_interval: timedelta = timedelta(seconds=30)
    poll_min: timedelta = timedelta(seconds=0.2)
    poll_factor: float = 2
    poll_max: timedelta = timedelta(seconds=10)
    error_wait: timedelta = timedelta(seconds=5)
    call_deadline: timedelta = timedelta(seconds=30)
    grace: timedelta = timedelta(seconds=25)
    most_steps: int | None = None  # it ends after so many

    def poll_interval(self, empty_polls: int) -> timedelta:
        """Return how long to sleep after this many empty polls in a row: longer each time, up to a maximum."""
        doublings = min(empty_polls - 1, 64)
        longest, wait = self.poll_max.total_seconds(), self.poll_min.total_seconds() * self.poll_factor**doublings
        return timedelta(seconds=min(longest, wait))

"""How a worker works: the options of its command line and of HOLDFAST_*, checked once."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass, field
from datetime import timedelta


def new_identity(name: str | None = None, *, group: str | None = None) -> str:
    """Name a worker, once for each start: a process that comes again under an old name holds none of its leases.

    Processes of one supervisor have a `group` in common, so that they do not take each other for strangers.
    """
    start = uuid.uuid4().hex[:8]
    return f"{name or f'{socket.gethostname()}:{os.getpid()}'}/{start if group is None else f'{group}.{start}'}"


def strangers(identity: str, others: list[str]) -> list[str]:
    """Return those of the others that are not of the same group."""
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

    def poll_interval(self, empty_polls: int) -> timedelta:
        """How long to sleep after so many polls in a row that found nothing: longer each time, up to a maximum."""
        doublings = min(empty_polls - 1, 64)
        longest, wait = self.poll_max.total_seconds(), self.poll_min.total_seconds() * self.poll_factor**doublings
        return timedelta(seconds=min(longest, wait))

"""The signals that stop a worker, and what its exit code means; imported by commands that must start fast."""

from __future__ import annotations

import signal

STOPS = (signal.SIGTERM, signal.SIGINT)
DRAINED = 0  # stopped in order: all that it held is settled or handed back
NOT_TOLD = 7  # stopped, but the database could not be reached: leases run out by themselves
REFUSED = frozenset({2, 5, 6})  # a definition, an option or a right is wrong: another start would end as this one did
STOPPED_NOW = 130  # interrupted by a second signal: handed back what it held without waiting for its handlers

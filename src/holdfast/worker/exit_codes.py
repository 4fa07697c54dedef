"""The signals that stop a worker, and its exit codes; separate, because commands that must start fast import it."""

from __future__ import annotations

import signal

STOPS = (signal.SIGTERM, signal.SIGINT)
DRAINED = 0  # orderly stop: everything that it held is settled or released
NOT_TOLD = 7  # stopped, but the database could not be reached: leases run out on their own
REFUSED = frozenset({2, 5, 6})  # a definition, an option or a privilege is wrong: a restart would end the same way
STOPPED_NOW = 130  # interrupted by a second signal: released what it held without waiting for its handlers

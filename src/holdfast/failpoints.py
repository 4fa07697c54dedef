"""Places where a test can make the process die, raise or wait; in production they do nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from holdfast.errors import HoldfastError


class FailpointReached(HoldfastError):
    """Raised at the place that HOLDFAST_FAILPOINT names."""


class Armed(NamedTuple):
    """The action at a place, and which visit to the place triggers it."""

    action: str
    turn: str
    times: Iterator[int]


def armed(setting: str) -> dict[str, Armed]:
    """Parse `name:action` or `name:action@3`, separated by commas."""
    armed = {}
    for entry in filter(None, setting.split(",")):
        name, _, then = entry.rpartition(":")
        action, _, turn = then.partition("@")
        armed[name] = Armed(action, turn or "1", count(1))
    return armed


_ARMED = armed(os.environ.get("HOLDFAST_FAILPOINT", ""))  # read once: a failpoint costs one lookup in an empty dict


def failpoint(name: str) -> None:
    """Do what HOLDFAST_FAILPOINT=name:kill9|raise|sleep requests here, on the first visit or, with @3, on the third."""
    if not _ARMED or name not in _ARMED:
        return
    action, turn, times = _ARMED[name]
    if turn != str(next(times)):
        return
    match action:
        case "kill9":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise FailpointReached(f"failpoint {name}")
        case "sleep":
            time.sleep(3600)
        case other:
            raise FailpointReached(f"the action in HOLDFAST_FAILPOINT must be kill9, raise or sleep, got {other}")

"""Places where a test may make the process die, raise or wait; in production they do nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from holdfast.errors import HoldfastError


class FailpointReached(HoldfastError):
    """Raised where HOLDFAST_FAILPOINT says so."""


class Armed(NamedTuple):
    """What is to happen at a place, and at which of the times that it is reached."""

    action: str
    turn: str
    times: Iterator[int]


def armed(setting: str) -> dict[str, Armed]:
    """Read `name:action` or `name:action@3`, several of them with commas between."""
    found = {}
    for entry in filter(None, setting.split(",")):
        name, _, then = entry.rpartition(":")
        action, _, turn = then.partition("@")
        found[name] = Armed(action, turn or "1", count(1))
    return found


_ARMED = armed(os.environ.get("HOLDFAST_FAILPOINT", ""))  # read once: a failpoint costs one look into an empty dict


def failpoint(name: str) -> None:
    """Do what HOLDFAST_FAILPOINT=name:kill9|raise|sleep asks for here, the first time or, with @3, the third."""
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
            raise FailpointReached(f"HOLDFAST_FAILPOINT: {other} is none of kill9, raise, sleep")

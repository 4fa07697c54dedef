"""Places where a test may make the process die, raise or wait; in production they do nothing."""

from __future__ import annotations

import os
import signal
import time
from typing import Literal, cast

from holdfast.errors import HoldfastError

Action = Literal["kill9", "raise", "sleep"]


class FailpointReached(HoldfastError):
    """Raised where HOLDFAST_FAILPOINT says so."""


def _armed() -> dict[str, Action]:
    pairs = (entry.rpartition(":") for entry in os.environ.get("HOLDFAST_FAILPOINT", "").split(",") if entry)
    return {name: cast("Action", action) for name, _, action in pairs}


_ARMED = _armed()  # read once: a failpoint costs one look into an empty dict


def failpoint(name: str) -> None:
    """Do what HOLDFAST_FAILPOINT=name:kill9|raise|sleep asks for at this place."""
    if not _ARMED or name not in _ARMED:
        return
    match _ARMED[name]:
        case "kill9":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise FailpointReached(f"failpoint {name}")
        case "sleep":
            time.sleep(3600)
        case other:
            raise FailpointReached(f"HOLDFAST_FAILPOINT: {other} is none of kill9, raise, sleep")

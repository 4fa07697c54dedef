"""The app of the scenarios in a worker that lacks guards: HOLDFAST_TEST_WITHOUT names them."""

from __future__ import annotations

import os
from typing import Any

from chores import hf

from holdfast.handlers import transaction
from holdfast.worker.attempt import Attempt
from holdfast.worker.leases import Leases
from holdfast.worker.settler import Settler

__all__ = ["hf"]


def deaf() -> None:
    """Never learn that a lease is lost, as a worker that was frozen between its last look and its report."""
    Leases._lose = lambda *_: None


def unwatched() -> None:
    """Let a handler go on whose lease has run out by the worker's own clock."""
    Leases._watch = lambda *_: None


def unchecked() -> None:
    """Commit a handler's transaction whatever the settle in it said."""
    transaction._check = lambda *_: None


def forgetful() -> None:
    """Give a report up when it fails."""
    settle = Settler.settle

    async def settle_once(self: Settler, ended: list[Attempt]) -> Any:
        try:
            return await settle(self, ended)
        except Exception:
            self._left = []
            raise

    Settler.settle = settle_once


WITHOUT = {"ears": deaf, "watchdog": unwatched, "check": unchecked, "memory": forgetful}
for guard in os.environ["HOLDFAST_TEST_WITHOUT"].split():
    WITHOUT[guard]()

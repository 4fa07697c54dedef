"""The app of the scenarios in a worker that lacks guards: HOLDFAST_TEST_WITHOUT names them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from chores import hf

from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.worker.attempt import Attempt
from holdfast.worker.leases import Leases
from holdfast.worker.settler import Settler

__all__ = ["hf"]


def take_out(owner: object, name: str) -> None:
    """Let a function do nothing; one that is not there would be no guard."""
    assert callable(getattr(owner, name))
    setattr(owner, name, lambda *_: None)


def deaf() -> None:
    """Never learn that a lease is lost, as a worker that was frozen between its last look and its report."""
    take_out(Leases, "_lose")


def unwatched() -> None:
    """Let a handler go on whose lease has run out by the worker's own clock."""
    take_out(Leases, "_watch")


def unchecked() -> None:
    """Commit a handler's transaction whatever the settle in it said."""
    calls.settle_whole = lambda settlements, **_checks: calls.settle_steps(settlements)


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


def unaware_of_limits() -> None:
    """Call the database as the release before limits does."""
    calls.claim_steps = leaving_out(calls.claim_steps, "free")
    calls.define_kind = leaving_out(calls.define_kind, "limits", "weight", "call_weight")


def leaving_out(whole: Callable[..., Call[Any]], *unknown: str) -> Callable[..., Call[Any]]:
    def older(*arguments: Any, **more: Any) -> Call[Any]:
        call = whole(*arguments, **more)
        assert call.arguments.keys() >= set(unknown)
        return replace(call, arguments={name: value for name, value in call.arguments.items() if name not in unknown})

    return older


WITHOUT = {
    "ears": deaf, "watchdog": unwatched, "check": unchecked, "memory": forgetful, "limits": unaware_of_limits,
}  # fmt: skip
for guard in os.environ["HOLDFAST_TEST_WITHOUT"].split():
    WITHOUT[guard]()

"""Holdfast: work that must not be lost, must not be done twice, and must be explainable afterwards."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.env import Env
    from holdfast.errors import HoldfastError, RunCancelled, RunFailed, WaitTimedOut
    from holdfast.handlers.batch import Batch
    from holdfast.handlers.context import Ctx
    from holdfast.handlers.registry import RetryPolicy
    from holdfast.kernel.handle import Handle
    from holdfast.models import Continue, Fail, Retry, Snooze
    from holdfast.notify import Event
    from holdfast.work.define import Task

__all__ = [
    "Batch",
    "Continue",
    "Ctx",
    "Env",
    "Event",
    "Fail",
    "Handle",
    "Holdfast",
    "HoldfastError",
    "Retry",
    "RetryPolicy",
    "RunCancelled",
    "RunFailed",
    "Snooze",
    "Task",
    "WaitTimedOut",
]

_ERRORS = ("HoldfastError", "RunCancelled", "RunFailed", "WaitTimedOut")
_OUTCOMES = ("Continue", "Fail", "Retry", "Snooze")
_PLACES = {
    "Batch": "handlers.batch",
    "Ctx": "handlers.context",
    "Env": "env",
    "Event": "notify",
    "Handle": "kernel.handle",
    "Holdfast": "app",
    "RetryPolicy": "handlers.registry",
    "Task": "work.define",
    **dict.fromkeys(_ERRORS, "errors"),
    **dict.fromkeys(_OUTCOMES, "models"),
}

if not TYPE_CHECKING:  # a type checker would take every name as one of ours

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, so that a command that needs none starts in half the time."""
        if name not in _PLACES:
            raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
        return getattr(import_module(f"holdfast.{_PLACES[name]}"), name)

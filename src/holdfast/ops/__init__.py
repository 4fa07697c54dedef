"""Runs that people and programs queue, watch and cancel. The types for handlers, and for handling runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.ops.context import OpsCtx
    from holdfast.ops.handle import OpsHandle
    from holdfast.ops.run import OpsRun
    from holdfast.ops.shell import ShellResult

__all__ = ["OpsCtx", "OpsHandle", "OpsRun", "ShellResult"]

_PLACES = {"OpsCtx": "context", "OpsHandle": "handle", "OpsRun": "run", "ShellResult": "shell"}

if not TYPE_CHECKING:  # a type checker would take every name as one of ours

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, because the face's entry and commands need none of them."""
        if name not in _PLACES:
            raise AttributeError(f"module 'holdfast.ops' has no attribute {name!r}")
        return getattr(import_module(f"holdfast.ops.{_PLACES[name]}"), name)

"""Flows: steps that wait for steps. What users write down, and what they hold of what they started."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.flow.backoff import Backoff, ReenqueueDelays, StepRetry
    from holdfast.flow.coordinator import Coordinator
    from holdfast.flow.decisions import Decision, Strategy
    from holdfast.flow.define import Flow
    from holdfast.flow.handle import FlowRun
    from holdfast.flow.step import Step

__all__ = [
    "Backoff",
    "Coordinator",
    "Decision",
    "Flow",
    "FlowRun",
    "ReenqueueDelays",
    "Step",
    "StepRetry",
    "Strategy",
]

_PLACES = {
    **dict.fromkeys(("Backoff", "ReenqueueDelays", "StepRetry"), "backoff"),
    "Coordinator": "coordinator",
    **dict.fromkeys(("Decision", "Strategy"), "decisions"),
    "Flow": "define",
    "FlowRun": "handle",
    "Step": "step",
}

if not TYPE_CHECKING:  # for a type checker it would make every name one of ours

    def __getattr__(name: str) -> Any:
        """Find a public name when it is first used: the face's entry and commands need none of them."""
        if name not in _PLACES:
            raise AttributeError(f"module 'holdfast.flow' has no attribute {name!r}")
        return getattr(import_module(f"holdfast.flow.{_PLACES[name]}"), name)

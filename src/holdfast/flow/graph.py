"""The graph of a flow: checks which step waits for which, and sorts them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from holdfast.errors import BadDefinition

Waits = Mapping[str, Sequence[str]]  # each step, and those that it waits for


def order(flow: str, waits: Waits) -> list[str]:
    """Sort each step after those that it waits for; reject an empty flow, unknown parents and cycles."""
    if not waits:
        raise BadDefinition(f"flow {flow} has no steps", where=flow, next=f"give it at least one, as in @{flow}.step")
    for name, parents in waits.items():
        for parent in parents:
            _check_parent(flow, name, parent, waits)
    try:
        return list(TopologicalSorter(waits).static_order())
    except CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        raise BadDefinition(
            f"steps of flow {flow} wait for each other: {circle}", next="take one of these edges away"
        ) from None


def leaves(waits: Waits) -> list[str]:
    """List the steps that no other waits for."""
    awaited = {parent for parents in waits.values() for parent in parents}
    return [name for name in waits if name not in awaited]


def levels(flow: str, waits: Waits) -> dict[str, int]:
    """Map each step to the length of the longest path to it, from 0."""
    depths: dict[str, int] = {}
    for name in order(flow, waits):
        depths[name] = 1 + max((depths[parent] for parent in waits[name]), default=-1)
    return depths


def _check_parent(flow: str, name: str, parent: str, waits: Waits) -> None:
    if parent == name:
        raise BadDefinition(
            f"step {name} of flow {flow} would wait for itself",
            where=name,
            next="take its own name out of `after` or `each`",
        )
    if parent not in waits:
        known = ", ".join(waits)
        raise BadDefinition(
            f"step {name} of flow {flow} waits for {parent}, which is not one of its steps",
            where=name,
            next=f"it has: {known}",
        )

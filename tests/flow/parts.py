"""What the model is made of: a flow's nodes, a task and its steps, and what may happen in an execution."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

DONE = {"complete", "resolved_manually"}

Role = Literal["plain", "map", "sub-flow"]


@dataclass(frozen=True)
class Node:
    """A step as a flow has it: `gives` is how long the list is that it gives, `inner` a flow of its own."""

    name: str
    after: tuple[str, ...] = ()
    limit: int = 3
    retryable: bool = True
    gives: int = 1
    each: str | None = None
    inner: tuple[Node, ...] = ()

    @property
    def tries(self) -> int:
        return self.limit if self.retryable else 1

    @property
    def role(self) -> Role:
        """What its own function is for: an item's, where it maps."""
        return "sub-flow" if self.inner else "plain"


@dataclass(frozen=True)
class Fate:
    """What happens in an execution."""

    what: Literal["done", "retry", "raises", "fail", "snooze", "release", "silent", "dies", "unheard"] = "done"
    after: timedelta | None = None


@dataclass(eq=False)
class Step:
    name: str
    node: Node
    role: Role
    takes: dict[str, Step]  # whose results it is given, under which names
    parents: list[Step]
    due: datetime
    owner: Step | None = None  # which planned it when it ran
    item: Any = None
    id: int = 0
    state: str = "pending"
    lease: int | None = None
    lease_until: datetime | None = None
    executions: int = 0
    failures: int = 0
    cursor: Any = None
    result: Any = None
    error: str | None = None
    is_over: bool = False

    @property
    def may_begin(self) -> bool:
        return all(parent.state in DONE for parent in self.parents)

    @property
    def due_at(self) -> datetime | None:
        """When it may be executed, if it is only time that it waits for."""
        return None if self.is_over or self.lease or not self.may_begin else self.due

    def gives(self) -> Any:
        """What it gives to those that wait for it."""
        if self.cursor and "mapped" in self.cursor and self.result in (None, self.cursor):
            return [each.gives() if each.state in DONE else None for each in self.parents if each.owner is self]
        return self.result

    def own_result(self) -> Any:
        """What its function gives in this execution."""
        if self.role == "sub-flow":
            return {"seed": f"{self.id}.{self.executions}"}
        return [f"{self.id}.{self.executions}.{n}" for n in range(self.node.gives)]

    def given(self) -> dict[str, Any]:
        """What its function is called with."""
        found = {name: step.gives() for name, step in self.takes.items()}
        if self.node.each is not None:
            found["item"] = self.item
        if self.owner is not None and self.owner.role == "sub-flow":
            found["seed"] = self.owner.cursor["context"]["seed"]
        return found


@dataclass(eq=False)
class Task:
    id: Any
    steps: dict[str, Step] = field(default_factory=dict)
    state: str = "pending"

    @property
    def is_over(self) -> bool:
        return self.state not in {"pending", "in_progress"}

    def status(self, now: datetime) -> str:
        """What its steps come to, what is most pressing first."""
        steps = list(self.steps.values())
        if not self.is_over and any(s.due_at is not None and s.due_at <= now for s in steps):
            return "has_ready_steps"
        if any(s.lease for s in steps):
            return "processing"
        if any(s.is_over and s.state not in DONE for s in steps) and self.state != "resolved_manually":
            return "blocked_by_failures"
        done = all(s.state in DONE for s in steps) or self.state == "resolved_manually"
        return "all_complete" if done else "waiting_for_dependencies"


def taken_over(task: Task, *, again: set[Step], afresh: set[Step], now: datetime) -> dict[str, Step]:
    """Copy the steps of a task but for those that steps in `afresh` had planned; done is what is not in `again`."""
    copies: dict[Step, Step] = {}
    for old in task.steps.values():
        if not _is_within(old, afresh):
            new = copies[old] = Step(old.name, old.node, old.role, {}, [], now, item=old.item)
            new.cursor = None if old in afresh else old.cursor
            if old.state in DONE and old not in again:
                new.state, new.is_over, new.result = "resolved_manually", True, old.result
    for old, new in copies.items():
        new.parents = [copies[parent] for parent in old.parents if parent in copies]
        new.takes = {name: copies[step] for name, step in old.takes.items()}
        new.owner = copies[old.owner] if old.owner else None
    return {step.name: step for step in copies.values()}


def _is_within(step: Step, owners: set[Step]) -> bool:
    return step.owner is not None and (step.owner in owners or _is_within(step.owner, owners))

"""A task of a flow as its document describes it, in plain Python: what must become of each step, and when.

It reads no database and counts nothing that can be seen: whether a step may begin is read off its parents each time.
Numbers that only a database can know are handed in.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from flow.parts import DONE, Fate, Node, Role, Step, Task, taken_over

WAITS = (1, 2, 4, 8, 16, 32)  # seconds after the first failure, the second, …
LONGEST_WAIT = timedelta(seconds=300)


class Refused(Exception):
    """What a person wished for is not possible now."""


class Model:
    def __init__(self, now: datetime) -> None:
        self.now = now
        self.tasks: list[Task] = []

    def start(self, task_id: Any, nodes: tuple[Node, ...]) -> Task:
        task = Task(task_id)
        self.tasks.append(task)
        self._plan(task, nodes)
        return task

    def steps(self) -> list[Step]:
        return [step for task in self.tasks for step in task.steps.values()]

    def ready(self) -> list[Step]:
        steps = [step for task in self.tasks if not task.is_over for step in task.steps.values()]
        return [step for step in steps if step.due_at is not None and step.due_at <= self.now]

    def next_moment(self) -> datetime | None:
        """When the next step is due or the next lease over, if that is still to come."""
        moments = [m for s in self.steps() for m in (s.due_at, s.lease_until) if m is not None]
        return min((m for m in moments if m >= self.now), default=None)

    # What workers do.

    def claim(self, step: Step, lease: int, until: datetime) -> None:
        step.state, step.lease, step.lease_until = "in_progress", lease, until
        step.executions += 1
        task = self._task(step)
        task.state = "in_progress"

    def report(self, step: Step, lease: int, fate: Fate) -> None:
        """Take what came of an execution; nothing of it counts when the lease is another's."""
        if step.lease != lease or fate.what in {"silent", "dies"}:
            return
        is_its_own = step.role != "map" and step.cursor is None  # else its function is not called
        if fate.what in {"release", "snooze"} and (is_its_own or fate.what == "release"):
            self._free(step, "pending", self.now + (fate.after or timedelta(0)))
        elif fate.what in {"retry", "raises"} and is_its_own:
            self._failed(step, "Boom", fate.after)
        elif fate.what == "fail" and is_its_own:
            self._failed(step, "Boom", is_final=True)
        else:
            self._succeeded(step)
        self._close(self._task(step))

    def rescue(self) -> None:
        for step in self.steps():
            if step.lease_until is not None and step.lease_until < self.now:
                self._failed(step, "LeaseExpired")
                self._close(self._task(step))

    # What people do.

    def wish(self, step: Step, wish: str, result: Any = None) -> None:
        task = self._task(step)
        if wish == "cancel":
            if step.state not in {"pending", "in_progress", "error"}:
                raise Refused
            self._end(step, "cancelled")
        elif wish == "resolve":
            if step.state not in {"pending", "error"}:
                raise Refused
            self._reopen(task)
            step.result = step.result if result is None else result
            self._end(step, "resolved_manually")
        else:
            if step.state != "error":
                raise Refused
            self._reopen(task)
            self._reset(step)
        self._close(task)

    def wish_for_task(self, task: Task, wish: str) -> None:
        if (wish == "cancel") == task.is_over or (wish != "cancel" and task.state != "error"):
            raise Refused
        if wish == "retry" and not any(step.state == "error" for step in task.steps.values()):
            raise Refused
        if wish == "cancel":
            task.state = "cancelled"
            for step in task.steps.values():
                if not step.is_over:
                    self._end(step, "cancelled")
        elif wish == "resolve":
            task.state = "resolved_manually"
        else:
            task.state = "pending"
            for step in task.steps.values():
                if step.state == "error":
                    self._reset(step)
            self._close(task)

    def retry_from(self, task_id: Any, first: Step) -> Task:
        """Do a step again and all that waits for it; the rest is taken over, as far as it is done."""
        old = self._task(first)
        if not old.is_over:
            raise Refused
        again = {first}
        while more := {s for s in old.steps.values() if again & {*s.parents}} - again:
            again |= more
        afresh = {first} | {s for s in again if any(p in again and p.owner is not s for p in s.parents)}
        task = Task(task_id, taken_over(old, again=again, afresh=afresh, now=self.now))
        self.tasks.append(task)
        return task

    # What hangs on that.

    def _plan(self, task: Task, nodes: tuple[Node, ...], owner: Step | None = None) -> list[Step]:
        prefix = f"{owner.name}." if owner else ""
        planned = {}
        for node in nodes:
            takes = {name: planned[name] for name in node.after}
            role: Role = "map" if node.each is not None else node.role
            step = Step(prefix + node.name, node, role, takes, list(takes.values()), self.now, owner)
            planned[node.name] = task.steps[step.name] = step
        return list(planned.values())

    def _succeeded(self, step: Step) -> None:
        task = self._task(step)
        if step.role == "map" and step.cursor is None:
            items = step.takes[step.node.each or ""].gives()
            if not isinstance(items, list):
                return self._failed(step, "NoList", is_final=True)
            if items:
                own = [self._item(task, step, place, item) for place, item in enumerate(items)]
                return self._expanded(step, {"mapped": len(items)}, own)
            step.result = []
        elif step.role == "sub-flow" and step.cursor is None:
            cursor = {"context": step.own_result(), "version": "0.1.0"}
            inner = self._plan(task, step.node.inner, step)
            waited_for = {parent for each in inner for parent in each.parents}
            return self._expanded(step, cursor, [each for each in inner if each not in waited_for])
        elif step.role == "sub-flow":
            step.result = {s.node.name: s.gives() for s in step.parents if s.owner is step}
        else:
            step.result = step.cursor if step.role == "map" else step.own_result()
        step.error = None
        return self._end(step, "complete")

    def _item(self, task: Task, step: Step, place: int, item: Any) -> Step:
        made = Step(f"{step.name}[{place}]", step.node, step.node.role, step.takes, [], self.now, step, item)
        task.steps[made.name] = made
        return made

    def _expanded(self, step: Step, cursor: Any, awaited: list[Step]) -> None:
        step.cursor, step.failures = cursor, 0
        step.parents = step.parents + awaited
        self._free(step, "pending", self.now)

    def _failed(self, step: Step, error: str, after: timedelta | None = None, *, is_final: bool = False) -> None:
        step.failures += 1
        step.error = error
        if is_final or step.failures >= step.node.tries:
            return self._end(step, "error")
        wait = timedelta(seconds=WAITS[step.failures - 1]) if after is None else min(after, LONGEST_WAIT)
        return self._free(step, "error", self.now + wait)

    def _free(self, step: Step, state: str, due: datetime) -> None:
        step.state, step.due, step.lease, step.lease_until = state, due, None, None

    def _reset(self, step: Step) -> None:
        step.is_over, step.failures = False, 0
        self._free(step, "pending", self.now)

    def _end(self, step: Step, state: str) -> None:
        self._free(step, state, self.now)
        step.is_over = True
        for child in self._task(step).steps.values():
            if step in child.parents and child.may_begin and state in DONE:
                child.due = self.now

    def _reopen(self, task: Task) -> None:
        if task.is_over and task.state != "error":
            raise Refused
        task.state = "pending" if task.is_over else task.state

    def _close(self, task: Task) -> None:
        steps = task.steps.values()
        if not task.is_over and not any(s.lease or s.due_at for s in steps):
            task.state = "complete" if all(s.state in DONE for s in steps) else "error"

    def _task(self, step: Step) -> Task:
        return next(task for task in self.tasks if task.steps.get(step.name) is step)

"""The content of a drawing of a flow or of a task: its boxes, and a line with its state."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.errors import BadInput, NotFound
from holdfast.flow import graph, reads, run_list, task_page
from holdfast.flow.graph_view import picture
from holdfast.flow.graph_view.picture import Box

DB = Connection[Any]


@dataclass(frozen=True, slots=True)
class Drawing:
    """The boxes of a drawing, and a line with the state."""

    what: str
    id: str
    title: str
    summary: str
    boxes: list[Box]

    def levels(self) -> dict[str, int]:
        """Return the depth of each box: the most boxes that come before it on one path."""
        return graph.levels(self.title, {box.name: box.after for box in self.boxes})

    def as_document(self) -> dict[str, Any]:
        """Return it as a mapping for JSON output."""
        levels = self.levels()
        boxes = [asdict(box) | {"states": dict(box.states), "level": levels[box.name]} for box in self.boxes]
        return {"what": self.what, "id": self.id, "title": self.title, "summary": self.summary, "boxes": boxes}


def of_flow(connection: DB, name: str, namespace: str | None, version: str | None) -> Drawing:
    """Return the drawing of a definition."""
    definitions = run_list.definitions(connection, name=name, namespace=namespace, version=version)
    if not definitions:
        raise NotFound(
            f"there is no flow {name} with these options", where=name, next="find it with `holdfast flow list`"
        )
    if len({each.namespace for each in definitions}) > 1:
        raise BadInput(
            f"flow {name} is in several namespaces: {', '.join(d.namespace for d in definitions)}",
            where="--namespace",
            next="choose one with --namespace",
        )
    latest = max(definitions, key=lambda each: each.defined_at)
    title = f"{latest.name} {latest.version}"
    summary = f"{latest.steps} steps, namespace {latest.namespace}"
    return Drawing("flow", latest.name, title, summary, picture.of_plan(run_list.plan(connection, latest)))


def of_task(connection: DB, id: int | UUID) -> Drawing:  # noqa: A002 - the word is the same in SQL
    """Return the drawing of a task, by its id or that of one of its steps."""
    task_id = reads.task_of(connection, id)
    task, steps = reads.task(connection, task_id), reads.steps(connection, task_id)
    succeeded = [step.id for step in steps if step.outcome == "succeeded"][: run_list.COUNTED]
    marked = reads.marked(connection, steps, succeeded)
    skipped = {step.id for step in marked if task_page.is_skipped(step, task)}
    done = progress(task.succeeded, task.total, task.failed)
    summary = f"{task.state}, {done} steps complete, {task.execution_status}"
    title = f"{task.name} {task.version}, task {task.id}"
    return Drawing("task", task.id, title, summary, picture.of_task(steps, skipped))


def progress(succeeded: int, total: int, failed: int) -> str:
    """Format the progress of a task."""
    return f"{succeeded}/{total}" + (f" ({failed} failed)" if failed else "")

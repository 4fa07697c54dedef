"""`holdfast flow retry`, `resolve` and `cancel`: what people do by hand, journaled with who and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated
from uuid import UUID

import typer

from holdfast.cli.connection import DB, opened
from holdfast.cli.options import Reason
from holdfast.cli.render import AsJson, data, data_json, data_table, say
from holdfast.errors import BadInput
from holdfast.flow import calls as flow
from holdfast.flow import reads
from holdfast.flow.cli.completion import tasks
from holdfast.flow.cli.start import read_json
from holdfast.kernel import calls, db
from holdfast.kernel.call import Call
from holdfast.reads.run_detail import parse_id

RESOLVE_EXAMPLE = "Example: holdfast flow resolve TASK charge --result '{\"paid\": 12}'"
Target = Annotated[str, typer.Argument(help="A task's UUID, or a step's number.", autocompletion=tasks)]
StepName = Annotated[str | None, typer.Argument(help="A step of the task, by its name.")]


def retry(
    target: Target,
    step: StepName = None,
    *,
    begin: Annotated[
        str | None, typer.Option("--from", help="Do this step and all that waits for it again, in a new task.")
    ] = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Try what failed again with a fresh budget; with --from, a step of a task that is over and all that follows."""
    if begin is None:
        _act(target, step, lambda subject: calls.retry(subject, reason), as_json=as_json)
        return
    if step is not None:
        raise BadInput(f"{step} and --from {begin} name two steps", where="--from", next="give the one or the other")
    with opened() as connection:
        from_id = _step_of(connection, parse_id(target), begin)
        (task_id,) = db.run(connection, flow.retry_from(from_id, reason))
    if as_json:
        data_json({"task": task_id, "retried_from": str(from_id)})
    else:
        data(str(task_id))
    say(f"a new task does {begin} again and takes over what is not; how it stands: holdfast flow show {task_id}")


def resolve(
    target: Target,
    step: StepName = None,
    *,
    result: Annotated[
        str | None, typer.Option("--result", help="What the step is to give to those that wait for it, as JSON.")
    ] = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Say that a person has dealt with a step (or a task): what waits for it goes on, with the result given here."""
    value = None if result is None else read_json(result, "--result")
    _act(target, step, lambda subject: calls.resolve(subject, reason, value), as_json=as_json)


def cancel(target: Target, step: StepName = None, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """Cancel a task with all its steps, or one step; a worker that has it learns so."""
    _act(target, step, lambda subject: calls.cancel(subject, reason), as_json=as_json)


def _act(target: str, step: str | None, action: Callable[[str], Call[str]], *, as_json: bool) -> None:
    task_or_step = parse_id(target)
    with opened() as connection:
        subject = _of_flow(connection, task_or_step) if step is None else _step_of(connection, task_or_step, step)
        (state,) = db.run(connection, action(str(subject)))
    if as_json:
        data_json({"id": str(subject), "state": state})
    else:
        data_table(("id", "state"), [(subject, state)])


def _of_flow(connection: DB, task_or_step: int | UUID) -> int | UUID:
    reads.task_of(connection, task_or_step)
    return task_or_step


def _step_of(connection: DB, task: int | UUID, step: str) -> int:
    if isinstance(task, int):
        raise BadInput(
            f"{task} is a step already", where=str(task), next=f"name a step as TASK {step}, or by its number alone"
        )
    return reads.step_of(connection, reads.task_of(connection, task), step)

"""`holdfast flow retry`, `resolve` and `cancel`: manual actions, journaled with who and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated
from uuid import UUID

import typer

from holdfast.cli.connection import DB, opened
from holdfast.cli.options import Reason
from holdfast.cli.render import AsJson, data, data_json, say
from holdfast.cli.table import data_table
from holdfast.errors import BadInput
from holdfast.flow import calls as flow
from holdfast.flow import reads
from holdfast.flow.cli.completion import runs
from holdfast.flow.cli.start import read_json
from holdfast.kernel import calls, db
from holdfast.kernel.call import Call
from holdfast.reads.run_detail import parse_id

RESOLVE_EXAMPLE = "Example: holdfast flow resolve RUN charge --result '{\"paid\": 12}'"
Target = Annotated[str, typer.Argument(help="A run's UUID, or a step's number.", autocompletion=runs)]
StepName = Annotated[str | None, typer.Argument(help="A step of the run, by its name.")]


def retry(
    target: Target,
    step: StepName = None,
    *,
    begin: Annotated[
        str | None, typer.Option("--from", help="Repeat this step and all that wait for it, in a new run.")
    ] = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Retry what failed, with a fresh budget of tries; with --from, a step of a finished run and all that follow it."""
    if begin is None:
        _act(target, step, lambda subject: calls.retry(subject, reason), as_json=as_json)
        return
    if step is not None:
        raise BadInput(
            f"both a step, {step}, and --from {begin} are given", where="--from", next="pass only one of them"
        )
    with opened() as connection:
        from_id = _step_of(connection, parse_id(target), begin)
        (task_id,) = db.run(connection, flow.retry_from(from_id, reason))
    if as_json:
        data_json({"task": task_id, "retried_from": str(from_id)})
    else:
        data(str(task_id))
    say(f"a new run repeats {begin} and keeps the other results; to see it: holdfast flow show {task_id}")


def resolve(
    target: Target,
    step: StepName = None,
    *,
    result: Annotated[
        str | None, typer.Option("--result", help="The result for the steps that wait for it, as JSON.")
    ] = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Mark a step or a run as resolved by hand: the steps that wait for it continue, with the result given here."""
    value = None if result is None else read_json(result, "--result")
    _act(target, step, lambda subject: calls.resolve(subject, reason, value), as_json=as_json)


def cancel(target: Target, step: StepName = None, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """Cancel a run with all its steps, or one step; the worker that holds it is notified."""
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
            f"{task} is a step, so it has no step {step}",
            where=str(task),
            next=f"write RUN {step}, or only the step's number",
        )
    return reads.step_of(connection, reads.task_of(connection, task), step)

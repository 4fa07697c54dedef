"""`holdfast ops work`: any program as a worker."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from holdfast import log
from holdfast.cli.connection import load_settings, opened
from holdfast.cli.options import parse_duration
from holdfast.cli.render import AsJson, data, data_json, say
from holdfast.env import Env
from holdfast.errors import BadInput
from holdfast.ops import reads
from holdfast.ops.context import OpsCtx
from holdfast.ops.run import OpsRun

EXAMPLE = "Example: DEPLOY_TOKEN=… holdfast ops work --kind deploy --secret DEPLOY_TOKEN -- ./deploy.sh"
LARGEST_METADATA = 64 * 1024  # characters of a variable
FOR_EVER = timedelta(days=365)
SUCCEEDED, FAILED = 0, 1


def work(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM…", help="The program, with its arguments.")],
    *,
    kind: Annotated[list[str], typer.Option("--kind", "-k", help="The kind of run that it executes. May be repeated.")],
    secret: Annotated[
        list[str], typer.Option("--secret", help="A variable whose value is masked in all output. May be repeated.")
    ] = [],  # noqa: B006 - typer copies it
    queue: Annotated[str, typer.Option("--queue", "-q", help="The queue to claim from.")] = "ops",
    concurrency: Annotated[int, typer.Option("--concurrency", "-c", min=1, max=1000, help="Runs at once.")] = 1,
    timeout: Annotated[
        timedelta | None,
        typer.Option("--timeout", parser=parse_duration, metavar="DURATION", help="The longest that a run may take."),
    ] = None,
    stop_grace: Annotated[
        timedelta,
        typer.Option(
            "--stop-grace", parser=parse_duration, metavar="DURATION", help="Time between SIGTERM and SIGKILL."
        ),
    ] = timedelta(seconds=10),
    grace: Annotated[
        timedelta | None,
        typer.Option("--grace", parser=parse_duration, metavar="DURATION", help="Time for runs to end after SIGTERM."),
    ] = None,
    keep_log: Annotated[bool, typer.Option("--keep-log", help="Keep all output of each run as an artifact.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Execute one run, and exit with its outcome.")] = False,
    burst: Annotated[bool, typer.Option("--burst", help="Work until nothing is due, then exit.")] = False,
    name: Annotated[str | None, typer.Option("--name", help="The worker's name; by default worker-HOST.")] = None,
    tenant: Annotated[list[str], typer.Option("--tenant", help="Serve only this tenant. May be repeated.")] = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """Execute runs with any program: its output becomes their events, its exit code their end.

    The program reads HOLDFAST_RUN_ID, HOLDFAST_PROJECT, HOLDFAST_ENV, HOLDFAST_GIT_SHA, HOLDFAST_GIT_REF and
    HOLDFAST_METADATA (JSON). Lines NAME=VALUE in the file HOLDFAST_OUTPUT become metadata of the run, and the file
    HOLDFAST_SUMMARY its summary. A failed execution is repeated in place, by default twice. Exit codes with --once: 0
    it succeeded or there was none, 1 it failed or was cancelled.
    """
    from holdfast.cli.worker import new_app, options_of, serve

    config = load_settings()
    log.configure(config.log_level, "json" if as_json else config.log_format)
    _check_program(program[0])
    for each in secret:
        Env(each).read()
    executed: list[str] = []

    def execute(ctx: OpsCtx, run: OpsRun) -> None:
        executed.append(run.run_id)
        metadata = json.dumps(run.metadata)
        ctx.shell(
            *program,
            env={"HOLDFAST_METADATA": metadata if len(metadata) <= LARGEST_METADATA else "{}"},
            grace=stop_grace,
            keep_log="output.log" if keep_log else None,
        )

    app = new_app()
    for each in dict.fromkeys(kind):
        app.ops(each, timeout=timeout, queue=queue)(execute)
    options = options_of(
        config, [queue], tenant, 1 if once else concurrency, burst=burst or once,
        name=name or f"worker-{socket.gethostname()}", grace=FOR_EVER if once and grace is None else grace,
        most_steps=1 if once else None,
    )  # fmt: skip
    say(f"{options.identity} executes {', '.join(kind)} with {shlex.join(program)}")
    code = serve(app, config, options)
    if once and not code:
        code = _outcome(executed)
    if as_json:
        data_json({"worker": options.identity, "runs": executed, "exit_code": code})
    elif once and not executed:
        data("No queued runs available")
    raise typer.Exit(code)


def _check_program(program: str) -> None:
    """Raise BadInput for a program that cannot be executed: each run would fail by it."""
    if shutil.which(program) is None:
        is_file = Path(program).is_file()
        raise BadInput(
            f"{program} is not executable" if is_file else f"there is no program {program}",
            where="PROGRAM",
            next=f"chmod +x {shlex.quote(program)}" if is_file else "write its path, or add its folder to PATH",
        )


def _outcome(executed: list[str]) -> int:
    """Return the exit code for the run that was executed."""
    if not executed:
        return SUCCEEDED
    with opened() as connection:
        status = reads.run_of(connection, executed[0]).status
    say(f"{executed[0]}: {status}")
    return SUCCEEDED if status == "success" else FAILED

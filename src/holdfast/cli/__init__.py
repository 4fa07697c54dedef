"""The command line: data on stdout, everything else on stderr, and a documented exit code for every outcome.

A command's module is imported when the command is used, so `holdfast --help` imports none of them.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from holdfast import faces
from holdfast.cli.lazy import Entry, lazy_group
from holdfast.errors import BadInput, HoldfastError

__all__ = ["app", "main"]

ENTRIES = {
    "start": Entry("holdfast.cli.start:start", "Start a task or a flow by its name."),
    "runs": Entry("holdfast.cli.runs:app", "Runs and single tasks: list, follow, pause, retry and cancel them."),
    "dlq": Entry("holdfast.cli.dlq:app", "The dead letter queue: steps that failed for good."),
    "queues": Entry("holdfast.cli.queues_workers:app", "Queues: list, pause and resume them."),
    "limits": Entry("holdfast.cli.limits:app", "Limits: how much at once and how fast."),
    "retention": Entry("holdfast.cli.retention:app", "Retention: how long finished tasks and runs are kept."),
    "schedules": Entry("holdfast.cli.schedules.commands:app", "Schedules: tasks and flows that start at set times."),
    "workers": Entry(
        "holdfast.cli.queues_workers:workers", "List workers: what each serves and holds, and when it was last seen."
    ),
    "worker": Entry("holdfast.cli.worker:worker", "Claim steps, run their handlers and settle the outcomes."),
    "dev": Entry("holdfast.cli.dev:dev", "Develop an app: database, migrations and a reloading worker in one command."),
    "demo": Entry(
        "holdfast.cli.demo:demo",
        "Run thousands of tasks while a worker is killed with -9, and prove that nothing was lost or accepted twice.",
    ),
    "sim": Entry("holdfast.cli.sim:app", "Simulated outside systems, with faults on demand."),
    "db": Entry("holdfast.cli.db:app", "The embedded PostgreSQL, or the server that HOLDFAST_DSN names."),
    "doctor": Entry(
        "holdfast.cli.doctor:doctor",
        "Check server, schema, settings and every invariant.",
    ),
    "config": Entry(
        "holdfast.cli.config:config",
        "Show the settings in force, each with its source: default, environment or file; secrets are masked.",
    ),
    **{
        face.name: Entry(face.commands, face.commands_help or face.summary)
        for face in faces.all_faces()
        if face.commands is not None
    },
}
app = typer.Typer(
    name="holdfast",
    help="Work that must not be lost, must not be done twice, and must be explainable afterwards.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    cls=lazy_group(ENTRIES),
)


@app.callback(invoke_without_command=True)
def _root(
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if show_version:
        from importlib.metadata import version

        sys.stdout.write(f"{version('holdfast-pg')}\n")
        raise typer.Exit


def main() -> None:
    """Run the command line, and exit with the code of the error, if any."""
    as_json = not {"--json", "--jsonl"}.isdisjoint(sys.argv)
    try:
        code = app(standalone_mode=not as_json)  # for JSON, a mistake in the arguments is raised, not printed
    except (HoldfastError, TyperException) as error:
        from holdfast.cli.render import show_error

        shown = error if isinstance(error, HoldfastError) else _usage_error(error)
        show_error(shown, as_json=as_json)
        sys.exit(shown.exit_code)
    except typer.Abort:
        sys.exit(1)
    sys.exit(code)


def _usage_error(error: TyperException) -> BadInput:
    """Return a mistake in the arguments as an error of ours, which has parts."""
    option = getattr(getattr(error, "param", None), "opts", None) or [getattr(error, "option_name", None)]
    command = getattr(getattr(error, "ctx", None), "command_path", "holdfast")
    return BadInput(error.format_message(), where=option[0], next=f"see {command} --help")

"""The command line: data on stdout, all else on stderr, and exit codes that mean something."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from holdfast import faces
from holdfast.cli import config, db, demo, dev, dlq, doctor, queues_workers, runs, worker
from holdfast.cli.render import data, show_error
from holdfast.errors import HoldfastError

__all__ = ["app", "main"]

app = typer.Typer(
    name="holdfast",
    help="Work that must not be lost, must not be done twice, and must be explainable afterwards.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(db.app, name="db")
app.add_typer(runs.app, name="runs")
app.add_typer(dlq.app, name="dlq")
app.add_typer(queues_workers.app, name="queues")
app.command()(queues_workers.workers)
app.command()(doctor.doctor)
app.command()(worker.worker)
app.command("config")(config.config)
app.command()(demo.demo)
app.command()(dev.dev)
for face in faces.all_faces():
    if face.commands is not None:
        app.add_typer(face.load("commands"), name=face.name)


@app.callback(invoke_without_command=True)
def _root(
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if show_version:
        data(version("holdfast-pg"))
        raise typer.Exit


def main() -> None:
    """Run the command line, and end with the exit code of what went wrong."""
    try:
        app()
    except HoldfastError as error:
        show_error(error, as_json=not {"--json", "--jsonl"}.isdisjoint(sys.argv))
        sys.exit(error.exit_code)

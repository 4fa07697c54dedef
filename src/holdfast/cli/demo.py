"""`holdfast demo`: what it takes. What it does is in `demo_report`, imported when it is run: it brings a whole app."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.options import output_options
from holdfast.cli.render import AsJson

Tasks = Annotated[int, typer.Option("--tasks", min=30, max=1_000_000, help="How many tasks to run.")]
Workers = Annotated[int, typer.Option("--workers", min=2, max=32, help="How many worker processes; one is killed.")]


@output_options
def demo(*, tasks: Tasks = 3000, workers: Workers = 3, as_json: AsJson = False) -> None:
    """Run some thousand tasks while a worker is killed with -9, and prove that nothing was lost or accepted twice.

    Works in a queue of its own on the embedded PostgreSQL, or on the server that HOLDFAST_DSN names. Ends by itself:
    exit code 0 when every figure is what it must be, 9 when one is not.

    Examples:

        holdfast demo

        holdfast demo --tasks 10000 --workers 4
    """
    from holdfast.cli.demo_report import show

    show(tasks=tasks, workers=workers, as_json=as_json)

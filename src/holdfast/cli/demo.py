"""The options of `holdfast demo`; its work is in `demo_report`, which imports a whole app and so is loaded on use."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.options import output_options
from holdfast.cli.render import AsJson

Tasks = Annotated[int, typer.Option("--tasks", min=30, max=1_000_000, help="How many tasks to run.")]
Workers = Annotated[int, typer.Option("--workers", min=2, max=32, help="How many worker processes; one is killed.")]


@output_options
def demo(*, tasks: Tasks = 3000, workers: Workers = 3, as_json: AsJson = False) -> None:
    """Run thousands of tasks while a worker is killed with -9, and prove that nothing was lost or accepted twice.

    An order runs through its flow, and three shops with two slots each are called, one of which asks for a pause.
    A sale changes 200 prices by its plan, except one that was edited by hand meanwhile.
    A simulated shop throttles a sale and refuses an item. Somebody edits a price there: a pass finds it, and the
    rollback leaves it alone. That needs the extras `sim` and `http`.
    A feed pulls 20,000 records while its worker is killed, and a second run brings one that came late.
    Signed pushes queue deployments: one is watched, one cancelled, one goes stale. That needs the extra `api`.
    It uses its own queue on the embedded PostgreSQL, or on the server that HOLDFAST_DSN names, and ends on its own.
    Exit codes: 0 if every figure is what it must be, 9 if one is not.

    Examples:

        holdfast demo

        holdfast demo --tasks 10000 --workers 4
    """
    from holdfast.cli.demo_report import show

    show(tasks=tasks, workers=workers, as_json=as_json)

"""`holdfast ops`: what people and programs do with runs."""

from __future__ import annotations

import typer

from holdfast.cli.options import output_options
from holdfast.ops.cli import webhook

app = typer.Typer(help="Runs that people and programs queue, watch and cancel.", no_args_is_help=True)
app.command()(output_options(webhook.webhook))


@app.callback()
def _ops() -> None:
    """Keep `webhook` a command of its own, even while it is the only one."""

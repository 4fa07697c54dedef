"""The toy's commands."""

from __future__ import annotations

import typer

from holdfast.cli.render import data

app = typer.Typer(name="toy", help="Wishes that are granted.", no_args_is_help=True)


@app.callback()
def _toy() -> None:
    """Keep `holdfast toy` a group of commands."""


@app.command()
def grant(name: str) -> None:
    """Grant a wish by its name."""
    data(f"granted: {name}")

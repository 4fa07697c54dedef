"""What commands print: data on stdout, for people on a terminal and for programs as JSON; all else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.errors import HoldfastError

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def data(text: str) -> None:
    """Print a line of data."""
    sys.stdout.write(f"{text}\n")


def data_json(value: object) -> None:
    """Print data as JSON: times in ISO 8601 and UTC."""
    data(json.dumps(value, default=_plain, ensure_ascii=False, indent=2))


def data_pairs(pairs: Mapping[str, object]) -> None:
    """Print names and values, one a line; a value that is missing is left out."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        if value is not None:
            data(f"{name.replace('_', ' '):<{width}}  {_plain(value)}")


def data_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, styles: Mapping[str, str]) -> None:
    """Print rows: as a table on a terminal, with tabs between the values elsewhere."""
    console = Console()
    if not console.is_terminal:
        for row in rows:
            data("\t".join(row))
        return
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(value, style=styles.get(value, "")) for value in row))
    console.print(table)


def say(text: str) -> None:
    """Tell people something that is not data."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(text))


def show_error(error: HoldfastError, *, as_json: bool) -> None:
    """Print what went wrong and what to do next."""
    what, then = in_parts(error)
    notes: list[str] = getattr(error, "__notes__", [])
    if as_json:
        found = {"error": type(error).__name__, "message": what, "next": then, "exit_code": error.exit_code}
        sys.stderr.write(json.dumps(found | {"notes": notes}, ensure_ascii=False) + "\n")
        return
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text.assemble(("error: ", "bold red"), what))
    for note in notes:
        console.print(Text(note))
    if then is not None:
        console.print(Text.assemble(("next:  ", "bold"), then))


def in_parts(error: HoldfastError) -> tuple[str, str | None]:
    """Take an error's text apart: it names what happened and, behind its last semicolon, the way on."""
    what, _, then = str(error).rpartition("; ")
    return (what, then) if what else (then, None)


def _plain(value: object) -> str:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case bool():
            return "yes" if value else "no"
        case Path() | str() | int():
            return str(value)
        case list():
            return ", ".join(map(str, value)) or "none"
        case _:
            raise TypeError(f"no way to print a {type(value).__name__}")

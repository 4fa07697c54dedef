"""What all commands share: a connection, spans of time, and the options that every command has."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from typing import Annotated, Any, TypeVar

import typer
from psycopg import Connection

from holdfast import embedded
from holdfast.cli.complete import ids, queues
from holdfast.cli.render import be_quiet, drop_colour
from holdfast.cli.settings import load
from holdfast.connections.deadline import connection_to

Command = TypeVar("Command", bound=Callable[..., None])
DB = Connection[Any]
UNITS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SPAN = re.compile(r"(?:(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)\s*)")
_LONGEST = timedelta(days=36500)
_SIGNS = (
    inspect.Parameter(
        "quiet",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option("--quiet", help="Print nothing but data and errors.")],
    ),
    inspect.Parameter(
        "no_color",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option("--no-color", help="Print without colour, as NO_COLOR does.")],
    ),
)


def parse_span(text: str) -> timedelta:
    """Read a span such as 90s, 5m, 2h or 1h30m; a bare number is seconds."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        text += "s"
    if not re.fullmatch(f"(?:{_SPAN.pattern})+", text):
        raise typer.BadParameter(f"{text!r} is no span of time; write it as 90s, 5m, 2h, 7d or 1h30m")
    seconds = sum(float(number) * UNITS[unit] for number, unit in _SPAN.findall(text))
    if seconds > _LONGEST.total_seconds():
        raise typer.BadParameter(f"{text!r} is too long; {_LONGEST.days} days are the most")
    return timedelta(seconds=seconds)


Id = Annotated[str, typer.Argument(help="A step's number or a run's UUID.", autocompletion=ids)]
Ids = Annotated[list[str], typer.Argument(help="Steps' numbers or runs' UUIDs.", autocompletion=ids)]
Queue = Annotated[str, typer.Argument(help="The queue.", autocompletion=queues)]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; it is journaled.")]
QueueOption = Annotated[str | None, typer.Option("--queue", help="Only of this queue.", autocompletion=queues)]
TenantOption = Annotated[str | None, typer.Option("--tenant", help="Only of this tenant.")]
SinceOption = Annotated[
    timedelta | None, typer.Option("--since", help="Only of the last 2h, 7d, …", parser=parse_span, metavar="SPAN")
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]


def common(command: Command) -> Command:
    """Give a command the options that all have: --quiet and --no-color."""

    @wraps(command)
    def with_options(*arguments: Any, quiet: bool = False, no_color: bool = False, **options: Any) -> None:
        if quiet:
            be_quiet()
        if no_color:
            drop_colour()
        command(*arguments, **options)

    own = inspect.signature(command, eval_str=True)
    with_options.__signature__ = own.replace(parameters=[*own.parameters.values(), *_SIGNS])  # type: ignore[attr-defined]
    return with_options  # type: ignore[return-value]


@contextmanager
def opened() -> Iterator[DB]:
    """Give a connection to the database of the settings; one that breaks is a server that went away."""
    with connection_to(embedded.address(load())) as connection:
        yield connection

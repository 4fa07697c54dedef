"""The options and arguments that several commands share, with their parsing and completion."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Annotated, Any, TypeVar

import psycopg
import typer
from psycopg import Connection

from holdfast import config, durations, embedded
from holdfast.cli.render import be_quiet, drop_colour
from holdfast.connections.deadline import connect
from holdfast.errors import HoldfastError
from holdfast.kernel.query import Query, limit_time, query
from holdfast.reads import queues_workers, run_detail

Command = TypeVar("Command", bound=Callable[..., None])
PATIENCE = 2  # seconds to connect, libpq's minimum
ANSWER_WITHIN = timedelta(milliseconds=300)
_SIGNS = (
    inspect.Parameter(
        "quiet",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option("--quiet", help="Print only data and errors.")],
    ),
    inspect.Parameter(
        "no_color",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option("--no-color", help="Print without colour, as NO_COLOR does.")],
    ),
)


def queues(incomplete: str) -> list[str]:
    """Complete the name of a queue."""
    return matching(queues_workers.queue_names(), incomplete)


def ids(incomplete: str) -> list[str]:
    """Complete the id of a recent task or run."""
    return matching(run_detail.recent_ids(), incomplete)


def matching(names: Query[str], incomplete: str) -> list[str]:
    """Complete a word with names from the database, as `matching_names` does."""
    return matching_names(lambda connection: query(connection, names), incomplete)


def matching_names(read: Callable[[Connection[Any]], list[str]], incomplete: str) -> list[str]:
    """Complete a word with names from the database; return nothing on an error, and start no server."""
    try:
        address = _address()
        if address is None:
            return []
        with connect(address, timeout=PATIENCE) as connection:
            limit_time(connection, ANSWER_WITHIN)
            known = read(connection)
    except (HoldfastError, psycopg.Error, OSError):
        return []
    return [name for name in known if name.startswith(incomplete) and name.isprintable()]


def _address() -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings: Any = config.load()
    if settings.dsn is None and not embedded.status(settings.home).running:
        return None
    return embedded.address(settings)


def parse_duration(text: str) -> timedelta:
    """Parse a duration such as 90s, 5m, 2h or 1h30m; a bare number is seconds."""
    try:
        return durations.parse(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}; write it as 90s, 5m, 2h, 7d or 1h30m") from None


Id = Annotated[str, typer.Argument(help="A step's number or a run's UUID.", autocompletion=ids)]
Ids = Annotated[list[str], typer.Argument(help="Steps' numbers or runs' UUIDs.", autocompletion=ids)]
RunIds = Annotated[list[str], typer.Argument(help="Runs' UUIDs.", autocompletion=ids)]
Queue = Annotated[str, typer.Argument(help="The queue.", autocompletion=queues)]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; stored in the journal.")]
QueueOption = Annotated[str | None, typer.Option("--queue", help="Only this queue.", autocompletion=queues)]
TenantOption = Annotated[str | None, typer.Option("--tenant", help="Only this tenant.")]
SinceOption = Annotated[
    timedelta | None,
    typer.Option("--since", help="Only the last 2h, 7d, …", parser=parse_duration, metavar="DURATION"),
]
WideOption = Annotated[bool, typer.Option("--wide", help="Show every column, with exact times and full texts.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=1000, help="The most rows to print.")]


def output_options(command: Command) -> Command:
    """Add the options that all commands have: --quiet and --no-color."""

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

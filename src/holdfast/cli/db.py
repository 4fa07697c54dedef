"""`holdfast db`: the database, embedded or named by HOLDFAST_DSN."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from holdfast import embedded
from holdfast.cli.connection import load_settings, masked, psql_call
from holdfast.cli.options import output_options
from holdfast.cli.render import AsJson, data, data_json, data_pairs, say
from holdfast.config import Config
from holdfast.embedded.binaries import EXTRA
from holdfast.errors import BadInput, NotFound, PermissionMissing
from holdfast.kernel import migrate as schema
from holdfast.kernel.reset import database_name
from holdfast.kernel.reset import reset as reset_database

app = typer.Typer(help="The embedded PostgreSQL, or the server that HOLDFAST_DSN names.", no_args_is_help=True)

DEMO_SCHEMA = "holdfast_demo"  # it counts effects by the numbers of tasks, which start again at 1
NO_SCHEMA = {"schema_version": None, "code_version": None, "pending": None}


@app.command()
@output_options
def start(as_json: AsJson = False) -> None:
    """Start the embedded PostgreSQL; other commands start it on demand."""
    config = load_settings()
    _refuse_other_server(config, "start")
    was_running = embedded.status(config.home).running
    embedded.ensure(config.home)
    say("already running" if was_running else "started")
    _show(_embedded(config), as_json=as_json)


@app.command()
@output_options
def stop(as_json: AsJson = False) -> None:
    """Stop the embedded PostgreSQL and end its open connections."""
    config = load_settings()
    _refuse_other_server(config, "stop")
    stopped = embedded.stop(config.home)
    say("stopped" if stopped else "it was not running")
    if as_json:
        data_json({"stopped": stopped})


@app.command()
@output_options
def status(as_json: AsJson = False) -> None:
    """Show whether the server runs, its address, and the schema's version."""
    config = load_settings()
    _show(_embedded(config) if config.dsn is None else _named(config.dsn.get_secret_value()), as_json=as_json)


@app.command()
@output_options
def url(
    show_password: Annotated[bool, typer.Option("--show-password", help="Print the password too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the address of the database, for psql and other programs; start the embedded one."""
    address = embedded.address(load_settings())
    shown = address if show_password else masked(address)
    if as_json:
        data_json({"url": shown})
    else:
        data(shown)


@app.command()
@output_options
def migrate(
    sql: Annotated[bool, typer.Option("--sql", help="Print the SQL without connecting.")] = False,
    as_json: AsJson = False,
) -> None:
    """Migrate the schema to this release; safe at any time, and for several at once."""
    if sql:
        data(schema.script())
        return
    applied = schema.run(embedded.address(load_settings()), progress=say)
    if as_json:
        data_json({"applied": applied})
        return
    for name in applied:
        data(name)
    say(f"applied {len(applied)}" if applied else "up to date")


@app.command()
@output_options
def reset(
    database: Annotated[
        str | None, typer.Option("--database", help="Its name; required on a server that HOLDFAST_DSN names.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Drop Holdfast's schemas with every run, task and journal entry, and install them again.

    It names the database and asks first. Stop the workers before you run it. Your own tables stay, but your views and
    foreign keys that refer to Holdfast's tables are dropped with them. On a server that HOLDFAST_DSN names, repeat the
    name of the database with --database.

    Examples:

        holdfast db reset

        holdfast db reset --yes

        HOLDFAST_DSN=postgresql://db.example/app holdfast db reset --database app
    """
    config = load_settings()
    address = embedded.address(config)
    name = database_name(address)
    place = f"the embedded PostgreSQL of {config.home}" if config.dsn is None else masked(address)
    _check_name(database, name, place, is_named=config.dsn is not None)
    if not yes:
        _confirm_reset(f"the database {name} ({place})")
    done = reset_database(address, also=[DEMO_SCHEMA], progress=say)
    if as_json:
        data_json(asdict(done))
    else:
        data_pairs({"database": done.database, "dropped": done.dropped, "installed": done.applied})


def _check_name(given: str | None, name: str, place: str, *, is_named: bool) -> None:
    if given is not None and given != name:
        raise BadInput(f"the database is {name}, not {given}", where="--database", next="check HOLDFAST_DSN")
    if is_named and given is None:
        raise PermissionMissing(
            f"this would drop every run and task of Holdfast in the database {name} ({place})",
            where="--database",
            next=f"holdfast db reset --database {name}",
        )


def _confirm_reset(what: str) -> None:
    if not sys.stdin.isatty():
        raise BadInput(
            f"this would drop every run and task of Holdfast in {what}, and there is no terminal to ask",
            where="--yes",
            next="add --yes to confirm",
        )
    if not typer.confirm(f"drop every run and task of Holdfast in {what}?", err=True):
        raise BadInput("nothing was dropped", where="--yes", next="answer y, or add --yes")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def psql(context: typer.Context) -> None:
    """Open psql on the database; further arguments go to psql, as in: holdfast db psql -c 'select 1'."""
    config = load_settings()
    address = embedded.address(config)
    arguments, environment = psql_call(address)
    os.execve(_psql(config), ["psql", *arguments, *context.args], os.environ | environment)  # noqa: S606


def _psql(config: Config) -> str:
    """Find psql: the bundled one for the embedded server, else the one on the PATH, as the bundled one has no TLS."""
    psql = None if config.dsn is None else shutil.which("psql")
    if psql is None and config.dsn is not None and not embedded.is_installed():
        raise NotFound(
            "there is no psql on the PATH",
            where="psql",
            next=f"install PostgreSQL's client programs, or use the bundled one: {EXTRA}",
        )
    return psql or str(embedded.binary("psql"))


def _embedded(config: Config) -> dict[str, Any]:
    server = embedded.status(config.home)
    return {
        "embedded": True,
        "running": server.running,
        "server_version": server.version,
        "pid": server.pid,
        "started_at": server.started_at,
        "data_directory": server.data_directory,
        "socket_directory": server.socket_directory,
        "log_file": server.log_file,
        **(_schema(embedded.ensure(config.home)) if server.running else NO_SCHEMA),
    }


def _named(address: str) -> dict[str, Any]:
    state = _schema(address)
    return {"embedded": False, "reachable": True, "url": masked(address), **state}


def _schema(address: str) -> dict[str, Any]:
    state = schema.status(address)
    return {
        "server_version": state.server_version,
        "schema_version": state.schema_version,
        "code_version": state.code_version,
        "pending": state.pending,
    }


def _show(pairs: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        data_json(pairs)
    else:
        data_pairs(pairs)


def _refuse_other_server(config: Config, verb: str) -> None:
    if config.dsn is not None:
        raise PermissionMissing(
            f"the server that HOLDFAST_DSN names ({masked(config.dsn.get_secret_value())}) is not embedded",
            where="HOLDFAST_DSN",
            next=f"{verb} it with its own tools, or unset HOLDFAST_DSN to use the embedded PostgreSQL",
        )

"""The database of a command: its settings, its address without secrets, and a connection to it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast import config, embedded
from holdfast.cli.render import say
from holdfast.config import Config
from holdfast.connections.deadline import connection_to
from holdfast.embedded.owned import reaped

DB = Connection[Any]
SECRETS = ("password", "sslpassword")
IN_URL = re.compile(r"(?<=:)[^:/?#]*(?=@)|(?<=[?&]password=)[^&]*|(?<=[?&]sslpassword=)[^&]*")


def load_settings() -> Config:
    """Read HOLDFAST_*, and warn about unknown names."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        settings = config.load()
    for warning in caught:
        say(f"warning: {warning.message}")
    return settings


@contextmanager
def opened() -> Iterator[DB]:
    """Yield a connection to the configured database; if it breaks, raise Unreachable."""
    with connection_to(embedded.address(load_settings())) as connection:
        yield connection


@contextmanager
def opened_database(settings: Config) -> Iterator[str]:
    """Yield the database's address. If we start the embedded server, it also stops when we are killed."""
    if settings.dsn is not None:
        address = settings.dsn.get_secret_value()
        say(f"database: {masked(address)}, from HOLDFAST_DSN")
        yield address
    elif embedded.status(settings.home).running:
        say(f"database: the embedded PostgreSQL of {settings.home}; it was already running and keeps running")
        yield embedded.ensure(settings.home)
    else:
        say(f"database: the embedded PostgreSQL of {settings.home}, started now")
        with reaped(settings.home):
            yield embedded.ensure(settings.home)
        say("the embedded PostgreSQL is stopped; its data stays, and the next command starts it again")


def as_typed(settings: Config) -> str:
    """Return `holdfast` so that it works as printed: with this call's home and path."""
    home = ""
    if settings.dsn is None and config.source("home") == "environment":
        home = f"{config.variable('home')}={shlex.quote(os.environ[config.variable('home')])} "
    return home + _program()


def _program() -> str:
    called, found = Path(sys.argv[0]), shutil.which("holdfast")
    if called.name != "holdfast":  # python -m holdfast
        return "holdfast" if found else f"{shlex.quote(sys.executable)} -m holdfast"
    return "holdfast" if found is not None and called.exists() and called.samefile(found) else shlex.quote(sys.argv[0])


def masked(address: str) -> str:
    """Hide the passwords in a DSN, and leave the rest unchanged."""
    hidden = dict.fromkeys((name for name in SECRETS if conninfo_to_dict(address).get(name)), "***")
    if not hidden:
        return address
    shown = IN_URL.sub("***", address) if "://" in address else ""
    parts = conninfo_to_dict(shown)
    return shown if all(parts.get(name) == "***" for name in hidden) else make_conninfo(address, **hidden)


def psql_call(address: str) -> tuple[list[str], dict[str, str]]:
    """Return psql's arguments and environment; the password goes into the environment, as all users see arguments."""
    parts = conninfo_to_dict(address)
    password = parts.pop("password", None)
    return [make_conninfo("", **parts)], {} if password is None else {"PGPASSWORD": str(password)}

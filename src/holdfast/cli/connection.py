"""The database of a command: the settings that name it, its address as it may be shown, and a connection to it."""

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
    """Read HOLDFAST_*, and say which of them mean nothing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        settings = config.load()
    for warning in caught:
        say(f"warning: {warning.message}")
    return settings


@contextmanager
def opened() -> Iterator[DB]:
    """Give a connection to the database of the settings; one that breaks is a server that went away."""
    with connection_to(embedded.address(load_settings())) as connection:
        yield connection


@contextmanager
def opened_database(settings: Config) -> Iterator[str]:
    """Give the address of the database. An embedded server that was not running is stopped also when we are killed."""
    if settings.dsn is not None:
        address = settings.dsn.get_secret_value()
        say(f"database: {masked(address)}, as HOLDFAST_DSN says")
        yield address
    elif embedded.status(settings.home).running:
        say(f"database: the embedded PostgreSQL of {settings.home}; it was running, and is left running")
        yield embedded.ensure(settings.home)
    else:
        say(f"database: the embedded PostgreSQL of {settings.home}, started now")
        with reaped(settings.home):
            yield embedded.ensure(settings.home)
        say("the embedded PostgreSQL is stopped again; its data stays, and the next command starts it")


def as_typed(settings: Config) -> str:
    """Write `holdfast` so that it works as printed: with the home of this call, and by the path it was called by."""
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
    """Hide the passwords in a DSN, and leave all else as it was written."""
    hidden = dict.fromkeys((name for name in SECRETS if conninfo_to_dict(address).get(name)), "***")
    if not hidden:
        return address
    shown = IN_URL.sub("***", address) if "://" in address else ""
    parts = conninfo_to_dict(shown)
    return shown if all(parts.get(name) == "***" for name in hidden) else make_conninfo(address, **hidden)


def psql_call(address: str) -> tuple[list[str], dict[str, str]]:
    """Give psql's arguments and environment: all users see the first, so a password goes into the second."""
    parts = conninfo_to_dict(address)
    password = parts.pop("password", None)
    return [make_conninfo("", **parts)], {} if password is None else {"PGPASSWORD": str(password)}

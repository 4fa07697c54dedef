"""The database of a command that brings its own: one that it had to start is stopped when the command ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast import embedded
from holdfast.cli.address import masked
from holdfast.cli.render import say
from holdfast.config import Config
from holdfast.embedded.owned import reaped


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

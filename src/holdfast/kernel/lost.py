"""What it means that a server does not answer: refused at the door, gone, or silent after it was asked to write."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection

from holdfast import errors
from holdfast.kernel.call import Call

BREAKS = (psycopg.OperationalError, psycopg.InterfaceError, errors.Unreachable)  # what a lost connection raises
# The server ends the connection with these. The driver may notice the end only when it uses it again.
_ENDINGS = frozenset({"57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04"})
_CONNECTION = "08"  # the class of SQLSTATEs; poolers use it for all that they refuse
_STARTS = frozenset({"start_task", "start_tasks", "start_run", "initialize_task", "take_staged"})

_REFUSED_LOGIN = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|not permitted to log in|"
    r"role \".*\" does not exist"
)
_NO_DATABASE = re.compile(r"database \".*\" does not exist")
_NO_WRITER = re.compile(r"session is read-only|server is in hot standby mode")  # of several, none that was asked for
_FULL = re.compile(
    r"too many (clients|connections)|remaining connection slots are reserved|no more connections allowed"
)
_NOT_YET = re.compile(r"the database system is \w+|terminating connection due to administrator command")


def is_lost(connection: Connection[Any] | AsyncConnection[Any], error: BaseException) -> bool:
    """Whether an error came with the end of the connection, noticed by the driver or not."""
    state = error.sqlstate or "" if isinstance(error, psycopg.Error) else ""
    return connection.closed or connection.broken or state in _ENDINGS or state.startswith(_CONNECTION)


def unanswered(call: Call[Any], error: BaseException) -> errors.DatabaseError:
    """Say that a call was sent on a connection that then broke: of a write nobody knows here whether it was done."""
    place = f"{call.schema}.{call.function}"
    if call.is_read:
        return gone(error, f"{place} was not answered")
    return unknown(error, place, _repeat(call))


def gone(error: BaseException, what: str = "the database went away") -> errors.Unreachable:
    """Say that a connection is gone and nothing was done by it."""
    return errors.Unreachable(f"{what}: {_line(error)}; see that the server runs, and try again")


def unknown(error: BaseException, place: str, then: str) -> errors.CommitUnknown:
    """Say that the answer to a write was lost, and how to go on."""
    return errors.CommitUnknown(f"{place} was not answered, so it may have been done or not: {_line(error)}; {then}")


def why_not_connected(said: str) -> errors.DatabaseError:
    """Tell apart why there is no connection: the driver reports it in words, without a code."""
    if _REFUSED_LOGIN.search(said):
        return errors.LoginRefused(f"the server refused the login: {said}; check user and password in HOLDFAST_DSN")
    if _NO_DATABASE.search(said):
        return errors.BadAddress(f"{said}; create the database, or name another in HOLDFAST_DSN")
    if _NO_WRITER.search(said):
        return errors.ReadOnly(f"no server takes writes: {said}; see which is to be the primary, or name it")
    if _FULL.search(said):
        return errors.TooManyConnections(
            f"too many connections: {said}; close some, put a pooler in front, or raise the limit (max_connections, "
            "or CONNECTION LIMIT of the role or database)"
        )
    if _NOT_YET.search(said):
        return errors.Unreachable(f"the server takes no connections now: {said}; wait until it is up, and try again")
    return errors.Unreachable(f"no PostgreSQL answered: {said}; check HOLDFAST_DSN, and that the server runs")


def _repeat(call: Call[Any]) -> str:
    key = call.arguments.get("key")
    match call.function in _STARTS, key:
        case True, None:
            return "look for it before you start it again, or start with a key, which may be repeated"
        case True, _:
            return f"start it again with the same key, {key!r}: it is not done twice"
        case _:
            return "look how it stands, or ask again"


def _line(error: BaseException) -> str:
    what, _, _way_on = str(error).rpartition("; ")  # of an error of ours, without its way on
    return " ".join((what if what and isinstance(error, errors.HoldfastError) else str(error)).split())

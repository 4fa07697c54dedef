"""Starts tasks and flows by name, without their Python code: each face knows its names and how to start them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from psycopg import Connection

from holdfast import faces
from holdfast.errors import BadInput, NotFound
from holdfast.kernel.call import Call
from holdfast.kernel.query import moment_ago

DB = Connection[Any]


@dataclass(frozen=True, slots=True)
class Order:
    """A request to start something by name. An option that is None was not given."""

    name: str
    input: Mapping[str, Any]
    key: str | None = None
    queue: str | None = None
    due_at: datetime | None = None
    priority: int | None = None
    tenant: str = "default"
    key_for: timedelta | None = None


class Starter(Protocol):
    """How a face starts something by name; the module that a face's `starter` names has these functions."""

    def names(self, connection: DB) -> list[str]:
        """List the names that workers have defined in the database."""

    def names_of(self, app: Any) -> list[str]:
        """List the names that an app has."""

    def call(self, order: Order) -> Call[Any]:
        """Return the call that starts it and returns its id."""

    def by_app(self, app: Any, order: Order) -> str:
        """Start it with the input checked by the app's own types, and return the id."""


def moment_in(connection: DB, delay: timedelta | None) -> datetime | None:
    """Return the time after a delay, by the database's clock."""
    return None if delay is None else moment_ago(connection, -delay)


def starters(face: str | None = None) -> dict[str, Starter]:
    """Load the starters of all faces, or that of one face."""
    known = {each.name: each for each in faces.all_faces() if each.starter is not None}
    if face is not None and face not in known:
        raise BadInput(
            f"there is no face {face} with names to start", where="face", next=f"use one of: {', '.join(known)}"
        )
    return {name: each.load("starter") for name, each in known.items() if face in {None, name}}


def find(name: str, names: Mapping[str, list[str]]) -> str:
    """Return the only face that has a name, given the names of each face."""
    having = [face for face, known in names.items() if name in known]
    if len(having) == 1:
        return having[0]
    if having:
        raise BadInput(f"{name} is defined by both {' and '.join(having)}", where=name, next=f"add --face {having[0]}")
    known = sorted({each for some in names.values() for each in some})
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or known[:5]
    next_step = f"use one of: {', '.join(near)}" if near else "start a worker that defines it: holdfast worker --app …"
    raise NotFound(f"no task or flow is called {name}", where=name, next=next_step)

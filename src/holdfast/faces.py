"""The list of faces: each has one entry, and one name in SQL, Python, the command line, metrics and docs.

The entries are dotted names that are loaded on use, so that every layer can read the list and none imports a face.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

VARIABLE = "HOLDFAST_FACES"  # more faces, as name=module, separated by commas
FACES: dict[str, str] = {  # each module holds its FACE
    "work": "holdfast.work.face",
    "flow": "holdfast.flow.face",
    "rules": "holdfast.rules.face",
    "ops": "holdfast.ops.face",
    "ingest": "holdfast.ingest.face",
}


@dataclass(frozen=True, slots=True)
class Face:
    """All that generic code knows about a face. Dotted names (`module:attribute`) are loaded on use."""

    name: str  # the name of its schema, package, commands and page
    summary: str  # one line for people
    machines: Mapping[str, str]  # each machine, and the word for one of its rows: "task", "run", "step"
    sql: str  # the package and folder of its SQL, as in "holdfast:sql/work"
    requirements: tuple[str, ...] = ()  # the ids that its tests prove, as ranges: "T-01 … T-148"
    has_schema: bool = True  # False for a face that so far only adds a machine
    api: str | None = None  # called with the app's Engine; what it returns is `hf.<name>`
    handle: str | None = None  # called with the Engine and an id; returns the handle of what has that id
    id_form: str | None = None  # a regular expression of the ids that `handle` takes; several faces may have UUIDs
    commands: str | None = None  # a typer app, `holdfast <name> …`
    commands_help: str | None = None  # the app's help, so that `holdfast --help` need not import it
    events: str | None = None  # the catalogue of its events, which the `watcher` of its API publishes
    starter: str | None = None  # the module that starts its runs by name: Starter in reads/startable.py
    retry: str | None = None  # called with an id and a reason, returns the call; None: the kernel's `retry`
    # Functions of its schema that the kernel calls by name, as docs/design/clock.md describes them.
    starts: str | None = None  # (target text, input jsonb, options jsonb, tenant text) returns text[]: the ids
    is_open: str | None = None  # (ids text[]) returns boolean: whether one of them, or what it started, is not over
    cancels: str | None = None  # (ids text[], reason text) returns void: cancels those that are not over
    prunes: str | None = None  # (step_ids bigint[], run_ids uuid[]) returns void: removes its rows about them
    ages: str | None = None  # (batch int) returns int: removes so many of its rows that are older than it keeps them
    unwanted: str | None = None  # (most int) returns uuid[]: runs that never began and that nobody can begin any more
    pages: Mapping[str, str] = field(
        default_factory=dict
    )  # files of docs/reference, each with the function that returns its text

    def folder(self) -> Traversable:
        """Return the folder of its SQL."""
        package, _, folder = self.sql.partition(":")
        return files(package) / folder

    def load(self, attribute: str) -> Any:
        """Load the object of one of its dotted names; None if that is unset."""
        dotted = getattr(self, attribute)
        return None if dotted is None else load(dotted)


def names() -> list[str]:
    """List the names of all faces."""
    return list(_modules())


def face(name: str) -> Face:
    """Load a face by its name."""
    modules = _modules()
    if name not in modules:
        raise LookupError(f"there is no face {name}; use one of: {', '.join(modules)}")
    return _load(modules[name])


def all_faces() -> list[Face]:
    """Load all faces, in the order of the list."""
    return [_load(module) for module in _modules().values()]


def face_of(machine: str) -> Face | None:
    """Return the face that defines a machine."""
    return next((each for each in all_faces() if machine in each.machines), None)


def retries() -> dict[str, Any]:
    """Map each machine with its own way to retry to the function that returns the call."""
    return {machine: each.load("retry") for each in all_faces() if each.retry is not None for machine in each.machines}


def events() -> dict[str, dict[str, Any]]:
    """Return each face's catalogue of events, by face and event name."""
    return {each.name: dict(each.load("events") or {}) for each in all_faces()}


@contextmanager
def plugged(name: str, module: str) -> Iterator[Face]:
    """Add a face inside the block, in this process and in those that it starts."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = ",".join(filter(None, [before, f"{name}={module}"]))
    try:
        yield face(name)
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def load(dotted: str) -> Any:
    """Import `module:attribute`, or a whole `module`."""
    name, _, attribute = dotted.partition(":")
    module = import_module(name)
    return getattr(module, attribute) if attribute else module


@cache
def _load(module: str) -> Face:
    loaded: Face = load(f"{module}:FACE")
    return loaded


def _modules() -> dict[str, str]:
    added = (part.partition("=") for part in os.environ.get(VARIABLE, "").split(",") if part)
    return FACES | {name.strip(): module.strip() for name, _, module in added}

"""`holdfast doctor`: is everything as it must be, and if not, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import TypeVar

import psycopg
import typer

from holdfast import embedded
from holdfast.cli import pooler
from holdfast.cli.checks import CHECKS, NEEDS_SCHEMA, Check, schema_version, server_version
from holdfast.cli.common import common
from holdfast.cli.render import AsJson, data_json, data_table, in_parts
from holdfast.cli.settings import load
from holdfast.config import Config
from holdfast.errors import HoldfastError
from holdfast.kernel import db, migrate

T = TypeVar("T")
CHECK_FAILED = 9
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@common
def doctor(as_json: AsJson = False) -> None:
    """Check server, schema, settings and every invariant; ends with 9 when one of them fails."""
    config = load()
    found = list(examine(config))
    has_failed = any(check.verdict == "fail" for check in found)
    if as_json:
        data_json({"ok": not has_failed, "checks": [asdict(check) for check in found]})
    else:
        rows = [(check.verdict, check.name, check.detail, check.next) for check in found]
        data_table(("", "check", "detail", "next step"), rows, styles=STYLES)
    if has_failed:
        raise typer.Exit(CHECK_FAILED)


def examine(config: Config) -> Iterator[Check]:
    """Make one check after the other; without a server there is only the first."""
    try:
        address = embedded.address(config)
        status = migrate.status(address)
    except HoldfastError as error:
        what, then = in_parts(error)
        yield Check("server", "fail", what, then or "")
        return
    yield server_version(status)
    yield schema_version(status)
    with db.connect(address) as connection:
        for name, check in CHECKS.items():
            if status.schema_version is not None or name not in NEEDS_SCHEMA:
                yield attempt(name, check, connection)
    yield attempt("hints", pooler.hints, address)
    yield attempt("statements", partial(pooler.statements, prepares=config.prepare_statements), address)


def attempt(name: str, check: Callable[[T], Check], asked: T) -> Check:
    """Make a check; one that the server refuses has failed."""
    try:
        return check(asked)
    except psycopg.Error as error:
        return Check(name, "fail", str(error).splitlines()[0], "log in as a role that may look, such as hf_operator")

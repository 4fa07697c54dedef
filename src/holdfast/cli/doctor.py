"""`holdfast doctor`: is everything as it must be, and if not, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Annotated, TypeVar

import psycopg
import typer

from holdfast import embedded
from holdfast.cli.common import common
from holdfast.cli.render import AsJson, data_json, data_table, in_parts
from holdfast.cli.settings import load
from holdfast.config import Config
from holdfast.connections.deadline import connection_to
from holdfast.errors import HoldfastError
from holdfast.kernel import migrate
from holdfast.reads import pooler
from holdfast.reads.doctor import CHECKS, NEEDS_SCHEMA, Check, schema_version, server_version
from holdfast.reads.server_settings import server_checks

T = TypeVar("T")
CHECK_FAILED = 9
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


SelfTest = Annotated[bool, typer.Option("--self-test", help="Make faults happen for a minute, and see that all holds.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Repeat the self-test of that seed.")]
Tasks = Annotated[
    int | None, typer.Option("--tasks", min=60, max=100_000, help="How many tasks the self-test runs, about (1500).")
]
Kills = Annotated[
    int | None, typer.Option("--kills", min=1, max=100, help="How often it kills a worker under load (8).")
]


@common
def doctor(
    *, self_test: SelfTest = False, seed: Seed = None, tasks: Tasks = None, kills: Kills = None, as_json: AsJson = False
) -> None:
    """Check server, schema, settings and every invariant; ends with 9 when one of them fails.

    With --self-test it installs the engine once more, in a schema of its own in the same database, and lets real
    workers run tasks there while they are killed with -9, frozen and cut off. Then it judges what they wrote down, the
    journal and their effects, and removes all of it. What is in use in the database is not touched.

    Examples:

        holdfast doctor

        holdfast doctor --self-test
    """
    if self_test:
        from holdfast.cli.self_test import self_test as run
        from holdfast.selftest.stage import Sizes

        count = tasks or 1500
        run(Sizes(tasks=count, kills=kills or 8, cuts=min(20, count // 10)), seed, as_json=as_json)
    for option, given in (("--seed", seed), ("--tasks", tasks), ("--kills", kills)):
        if given is not None:
            raise typer.BadParameter(f"{option} is for the self-test; add --self-test, or leave it out")
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
    with connection_to(address) as connection:
        for name, check in (CHECKS | server_checks(config.call_deadline)).items():
            if status.schema_version is not None or name not in NEEDS_SCHEMA:
                yield attempt(name, check, connection)
    yield attempt("hints", pooler.hints, address)
    yield attempt("statements", partial(pooler.statements, prepares=config.prepare_statements), address)


def attempt(name: str, check: Callable[[T], Check], asked: T) -> Check:
    """Make a check; one that the server refuses, or whose answer the driver cannot read, has failed."""
    try:
        return check(asked)
    except psycopg.Error as error:
        return Check(name, "fail", str(error).splitlines()[0], "log in as a role that may look, such as hf_operator")
    except NotImplementedError as error:
        return Check(name, "fail", str(error).splitlines()[0], "set intervalstyle and datestyle back: see `session`")

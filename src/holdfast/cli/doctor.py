"""`holdfast doctor`: is everything as it must be, and if not, what to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from holdfast.cli.common import common
from holdfast.cli.render import AsJson, data_json, data_table
from holdfast.cli.settings import load
from holdfast.reads.doctor import examine

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
    for option, value in (("--seed", seed), ("--tasks", tasks), ("--kills", kills)):
        if value is not None:
            raise typer.BadParameter(f"{option} is for the self-test; add --self-test, or leave it out")
    checks = list(examine(load()))
    has_failed = any(check.verdict == "fail" for check in checks)
    if as_json:
        data_json({"ok": not has_failed, "checks": [asdict(check) for check in checks]})
    else:
        rows = [(check.verdict, check.name, check.detail, check.next) for check in checks]
        data_table(("", "check", "detail", "next step"), rows, styles=STYLES)
    if has_failed:
        raise typer.Exit(CHECK_FAILED)

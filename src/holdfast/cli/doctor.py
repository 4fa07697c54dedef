"""`holdfast doctor`: checks the installation and says what to do; with --self-test, also under faults."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from holdfast.cli.connection import load_settings, opened_database
from holdfast.cli.options import output_options
from holdfast.cli.render import AsJson, data, data_json, is_quiet, say
from holdfast.cli.table import data_table
from holdfast.errors import NotMigrated

if TYPE_CHECKING:
    from holdfast.selftest.play import Row, Show
    from holdfast.selftest.stage import Sizes

CHECK_FAILED, INTERRUPTED = 9, 130
VERDICTS = {"ok": "green", "warn": "yellow", "fail": "bold red", "new": "cyan"}
FAULT_COLUMNS = ("", "fault", "what must hold", "rounds", "kills", "lost", "accepted twice", "seconds")
MARKS = {"✓": "bold green", "✗": "bold red"}
SelfTest = Annotated[
    bool, typer.Option("--self-test", help="Inject faults for a minute, and check that every guarantee holds.")
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Repeat the self-test with this seed.")]
Tasks = Annotated[
    int | None, typer.Option("--tasks", min=60, max=100_000, help="About how many tasks the self-test runs (1500).")
]
Kills = Annotated[
    int | None, typer.Option("--kills", min=1, max=100, help="How often it kills a worker under load (8).")
]


@output_options
def doctor(
    *, self_test: SelfTest = False, seed: Seed = None, tasks: Tasks = None, kills: Kills = None, as_json: AsJson = False
) -> None:
    """Check server, schema, settings and every invariant.

    Exit codes: 0 all is well, 9 a check failed, 13 the database is new: run `holdfast db migrate` first.

    With --self-test it installs the engine a second time, in its own schema of the same database, and lets real
    workers run tasks there while they are killed with -9, frozen and disconnected. Then it compares their records, the
    journal and their effects, and removes everything. The rest of the database is not touched.

    Examples:

        holdfast doctor

        holdfast doctor --self-test
    """
    if self_test:
        from holdfast.selftest.stage import Sizes

        count = tasks or 1500
        run_self_test(Sizes(tasks=count, kills=kills or 8, cuts=min(20, count // 10)), seed, as_json=as_json)
    for option, value in (("--seed", seed), ("--tasks", tasks), ("--kills", kills)):
        if value is not None:
            raise typer.BadParameter(f"{option} is for the self-test; add --self-test, or remove it")
    from holdfast.reads.doctor import examine

    checks = list(examine(load_settings()))
    verdicts = {check.verdict for check in checks}
    if as_json:
        data_json({"ok": verdicts.isdisjoint({"fail", "new"}), "checks": [asdict(check) for check in checks]})
    else:
        rows = [(check.verdict, check.name, check.detail, check.next) for check in checks]
        data_table(("", "check", "detail", "next step"), rows, styles=VERDICTS)
    if "fail" in verdicts:
        raise typer.Exit(CHECK_FAILED)
    if "new" in verdicts:
        say("this database is new: run `holdfast db migrate`, then `holdfast doctor` again")
        raise typer.Exit(NotMigrated.exit_code)


def run_self_test(sizes: Sizes, seed: int | None, *, as_json: bool) -> None:
    """Run the self-test and report it; exit with the code of the verdict."""
    from holdfast.selftest import play

    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    began_at = time.monotonic()
    with _heeding(), opened_database(load_settings()) as dsn:
        say(f"self-test, seed {seed}: in its own schema, which is removed at the end; about a minute")
        try:
            with showing() as show:
                rows = play.run(dsn, sizes, seed, show)
        except KeyboardInterrupt:
            say("interrupted; everything that the self-test created is removed")
            raise typer.Exit(INTERRUPTED) from None
    _report(rows, seed, round(time.monotonic() - began_at, 1), as_json=as_json)
    raise typer.Exit(0 if all(row.is_sound for row in rows) else CHECK_FAILED)


@contextmanager
def showing() -> Iterator[Show]:
    """Yield the display of progress: one changing line on a terminal, elsewhere one line per fault."""
    console = Console(stderr=True, highlight=False)
    if is_quiet() or not console.is_terminal:
        yield _in_lines()
        return
    with console.status("setting up") as status:
        yield lambda fault, how: status.update(f"{fault}: {how}")


def _in_lines() -> Show:
    printed: set[str] = set()

    def show(fault: str, how: str) -> None:
        if fault not in printed:
            printed.add(fault)
            say(f"{fault}: {how}")

    return show


def _report(rows: list[Row], seed: int, seconds: float, *, as_json: bool) -> None:
    broken = [row for row in rows if not row.is_sound]
    if as_json:
        data_json({"ok": not broken, "seed": seed, "seconds": seconds, "faults": [asdict(row) for row in rows]})
        return
    data_table(FAULT_COLUMNS, [_cells(row) for row in rows], styles=MARKS)
    if not broken:
        data(f"\nAll held, in {seconds:g} s. To repeat it: holdfast doctor --self-test --seed {seed}")
        return
    for row in broken:
        problems = "; ".join((f"{row.lost} lost", f"{row.twice} accepted twice", *row.broken))
        data(f"\n{row.fault}: it must hold that {row.holds}. Found: {problems}")
    data(f"Do not rely on this installation. Repeat it: holdfast doctor --self-test --seed {seed}")
    data("If it fails again, check for a pooler or proxy in front of the server (holdfast doctor), and report it.")


def _cells(row: Row) -> tuple[object, ...]:
    mark = "✓" if row.is_sound else "✗"
    return (mark, row.fault, row.holds, row.rounds, row.kills, row.lost, row.twice, row.seconds)


@contextmanager
def _heeding() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end it in an orderly way, as Ctrl-C does. A second signal does not hurry the removal."""

    def once(_number: int, _frame: object) -> None:
        for other in before:
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt

    before: dict[int, Callable[..., object] | int | None] = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        before[number] = signal.signal(number, once)
    try:
        yield
    finally:
        for heard, handler in before.items():
            signal.signal(heard, handler)

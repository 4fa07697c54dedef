"""`holdfast doctor --self-test`: the faults of the suite in a minute, on the user's own database."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import typer
from rich.console import Console

from holdfast.cli.database import opened_database
from holdfast.cli.render import data, data_json, data_table, is_quiet, say
from holdfast.cli.settings import load
from holdfast.selftest import play
from holdfast.selftest.play import Row, Show
from holdfast.selftest.stage import Sizes

CHECK_FAILED, INTERRUPTED = 9, 130
COLUMNS = ("", "fault", "what must hold", "rounds", "kills", "lost", "accepted twice", "seconds")
STYLES = {"✓": "bold green", "✗": "bold red"}


def self_test(sizes: Sizes, seed: int | None, *, as_json: bool) -> None:
    """Run it and report; ends with the exit code that the verdict has."""
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    began_at = time.monotonic()
    with _heeding(), opened_database(load()) as dsn:
        say(f"self-test, seed {seed}: in a schema of its own, which is removed at the end; about a minute")
        try:
            with showing() as show:
                rows = play.run(dsn, sizes, seed, show)
        except KeyboardInterrupt:
            say("interrupted; what the self-test had made is removed")
            raise typer.Exit(INTERRUPTED) from None
    _report(rows, seed, round(time.monotonic() - began_at, 1), as_json=as_json)
    raise typer.Exit(0 if all(row.is_sound for row in rows) else CHECK_FAILED)


@contextmanager
def showing() -> Iterator[Show]:
    """Give what shows how far it is: on a terminal one line that changes, elsewhere one for each fault."""
    console = Console(stderr=True, highlight=False)
    if is_quiet() or not console.is_terminal:
        yield _in_lines()
        return
    with console.status("setting up") as status:
        yield lambda fault, how: status.update(f"{fault}: {how}")


def _in_lines() -> Show:
    told: set[str] = set()

    def show(fault: str, how: str) -> None:
        if fault not in told:
            told.add(fault)
            say(f"{fault}: {how}")

    return show


def _report(rows: list[Row], seed: int, seconds: float, *, as_json: bool) -> None:
    broken = [row for row in rows if not row.is_sound]
    if as_json:
        data_json({"ok": not broken, "seed": seed, "seconds": seconds, "faults": [asdict(row) for row in rows]})
        return
    data_table(COLUMNS, [_cells(row) for row in rows], styles=STYLES)
    if not broken:
        data(f"\nAll held, in {seconds:g} s. To repeat it: holdfast doctor --self-test --seed {seed}")
        return
    for row in broken:
        said = "; ".join((f"{row.lost} lost", f"{row.twice} accepted twice", *row.broken))
        data(f"\n{row.fault}: it must hold that {row.holds}. Found: {said}")
    data(f"Do not rely on this installation. Repeat it: holdfast doctor --self-test --seed {seed}")
    data("If it fails again, look whether a pooler or proxy stands before the server (holdfast doctor), and report it.")


def _cells(row: Row) -> tuple[object, ...]:
    mark = "✓" if row.is_sound else "✗"
    return (mark, row.fault, row.holds, row.rounds, row.kills, row.lost, row.twice, row.seconds)


@contextmanager
def _heeding() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end it as Ctrl-C does: in order. A second signal does not hurry the removal."""

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

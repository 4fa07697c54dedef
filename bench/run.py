"""Measure holdfast, its peers and hand-written SQL, in one run.

    make bench                                   everything, three rounds
    make bench ONLY=drain QUICK=1                one section, small
    make bench ENGINES=holdfast,baseline         some engines

The figures go to bench/results/, the report to bench/RESULTS.md. Progress is on stderr.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType

import engines
import figures
import home
import server
from bars import BARS
from bench import Bench
from engines import ENGINES, Engine
from readings import Section

ORDER = (
    "bulk", "drain", "masked", "trickle", "steady", "hot", "targets", "diamonds", "fan", "chain", "widths", "subscribers", "growth", "retention",
    "snapshot", "limits", "batches", "pause", "cancel", "shell", "cost", "producers", "own", "ops", "rules", "ingest", "feeds", "pulls", "ticks", "memory", "idle",
)  # fmt: skip


def main() -> int:
    """Run the sections in order, and return by the exit code whether ours were measured."""
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    asked = [engines.named(name) for name in options.engines.split(",")] if options.engines else list(ENGINES)
    install(asked)
    folder = home.home() / f"run-{os.getpid()}"
    begun, failures = time.monotonic(), []
    sections = [import_module(f"sections.{name}") for name in options.only or available()]
    try:
        with server.running(folder) as running:
            for place, module in enumerate(sections):
                to_come = ", ".join(later.NAME for later in sections[place + 1 :]) or "none"
                say(begun, f"{module.TITLE}; still to come: {to_come}")
                failures += measure(module, running, asked, options, begun)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report(options.results)
    for failure in failures:
        say(begun, f"failed: {failure}")
    return 1 if failures else 0


def measure(
    module: ModuleType, running: server.Server, asked: list[Engine], options: argparse.Namespace, begun: float
) -> list[str]:
    """Run one section, save what it read, and name what failed: the section itself, or one of ours in it."""
    versions = {engine.name: version(engine) for engine in asked if engines.availability()[engine.name] is None}
    rounds = options.rounds or (1 if options.quick else 3)
    section = Section(module.NAME, module.TITLE, options.quick, rounds, running.describe(), versions)
    bench = Bench(running, asked, section, options.tasks, begun)
    broken = []
    try:
        module.measure(bench)
    except Exception as error:  # noqa: BLE001 - the other sections are still worth their time
        traceback.print_exc()
        broken = [f"{module.NAME} itself: {error}"]
    say(begun, f"{module.NAME} saved to {section.save(options.results)}")
    measured = figures.load(options.results)
    for bar in (bar for bar in BARS if bar.section == module.NAME):
        say(begun, f"{module.NAME}: {bar.reported(bar.read(measured))}")
    return broken + [
        f"{engine.name} in {module.NAME}" for engine in asked if engine.is_ours and engine.name in bench.failed
    ]


def install(asked: list[Engine]) -> None:
    """Install the peers that were asked for and can run here."""
    lacks = engines.availability()
    languages = {engine.language for engine in asked if not engine.is_ours and lacks[engine.name] is None}
    if "python" in languages:
        home.ensure_python()
    if "node" in languages:
        home.ensure_node()


def version(engine: Engine) -> str:
    """Return an engine's version, with that of its foundation."""
    if engine.is_ours:
        return metadata.version("holdfast-pg")
    found = home.package_version(engine.package)
    if engine.language == "node":
        return f"{found} (node {said(str(home.node()), '--version').lstrip('v')})"
    if engine.pending is None:
        return f"{found} (redis {said('redis-server', '--version').split('v=')[1].split()[0]})"
    return found


def said(*command: str) -> str:
    """Return the output of a program."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def available() -> list[str]:
    """Return the sections that there are, in order."""
    return [name for name in ORDER if (home.HERE / "sections" / f"{name}.py").exists()]


def report(results: Path) -> None:
    """Write the report and the plots from the figures of all sections."""
    if results == home.HERE / "results":
        subprocess.run([sys.executable, str(home.HERE / "report.py")], check=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=available(), help="this section alone (may be given again)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: under six minutes")
    parser.add_argument("--rounds", type=int, help="rounds of each section (3; 1 with --quick)")
    parser.add_argument("--engines", help="these alone, with commas between them")
    parser.add_argument("--tasks", type=int, help="tasks of a drain, in place of each engine's own")
    parser.add_argument(
        "--results", type=lambda text: Path(text).resolve(), default=home.HERE / "results", help="where the figures go"
    )
    return parser.parse_args()


def say(begun: float, line: str) -> None:
    print(f"{time.monotonic() - begun:6.0f} s  {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

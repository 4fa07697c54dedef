"""Gathers what tests of faults found, tells it as a table at the end, and writes it where users read it.

A test names its scenarios in its docstring ("R9"), or by `@pytest.mark.scenario("guards")`, and tells its figures
through the `proof` fixture. With --faults these tests run, and the long ones; without it all but the long ones.
"""

from __future__ import annotations

import os
import platform
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scenarios.catalogue import NOT_YET, SCENARIOS
from scenarios.proof import Figures, Proof, seed

PAGE = Path(__file__).parents[1] / "docs/explanation/guarantees.md"
BEGIN, END = "<!-- faults: written by make test-faults -->", "<!-- /faults -->"
HEAD = ("", "Fault", "What must hold", "Tests", "Rounds", "Kills", "Lost", "Accepted twice", "Seconds")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", action="store_true", help="run the tests of faults and the long ones, and no others")
    parser.addoption("--write-table", action="store_true", help=f"write what they found to {PAGE.name}")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "scenario(name): shows what holds under this fault of the catalogue")
    config.addinivalue_line("markers", "long: takes a quarter of a minute or more; runs with --faults only")
    # Here, as workers of xdist inherit the environment. Only --faults looks for new faults each time.
    drawn = random.SystemRandom().randrange(10**6) if config.getoption("--faults") else 1
    os.environ.setdefault("FAULT_SEED", str(drawn))
    config.pluginmanager.register(Table(config), "fault-table")


def pytest_report_header() -> str:
    return f"faults: FAULT_SEED={seed()}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what was asked for, and let each test's report say which scenarios it shows."""
    faults = config.getoption("faults")
    left = [item for item in items if _is_left_out(item, faults=faults)]
    items[:] = [item for item in items if not _is_left_out(item, faults=faults)]
    config.hook.pytest_deselected(items=left)
    for item in items:
        item.user_properties.append(("scenarios", shown_by(item)))


def shown_by(item: pytest.Item) -> list[str]:
    """List the scenarios that a test names."""
    marked = [number for mark in item.iter_markers("scenario") for number in mark.args]
    named = re.findall(r"\bR\d+\b", getattr(item, "obj", None).__doc__ or "")
    return [number for number in dict.fromkeys([*marked, *named]) if number in SCENARIOS]


def _is_left_out(item: pytest.Item, *, faults: bool) -> bool:
    is_long = item.get_closest_marker("long") is not None
    return not is_long and not shown_by(item) if faults else is_long


@pytest.fixture
def proof(request: pytest.FixtureRequest) -> Iterable[Proof]:
    """Counts what this test finds; also when it then fails."""
    proof = Proof(request.node.nodeid)
    yield proof
    request.node.user_properties.append(("figures", proof.figures))


@dataclass
class Row:
    """What all tests of one scenario found together."""

    tests: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0
    figures: Figures = field(default_factory=dict)

    def cells(self, number: str) -> tuple[str, ...]:
        fault, holds = SCENARIOS[number]
        if self.failed:
            holds = f"**failed: {self.failed} of {self.tests}**"
        elif self.skipped:
            holds += f" ({self.skipped} of {self.tests} skipped)"
        found = [str(self.figures.get(name, "-")) for name in ("rounds", "kills", "lost", "twice")]
        return (number, fault, holds, str(self.tests), *found, f"{self.seconds:.0f}")


class Table:
    """Listens to reports, in the process that leads."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._rows: dict[str, Row] = {}

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told: dict[str, Any] = dict(report.user_properties)
        for number in told.get("scenarios", []):
            row = self._rows.setdefault(number, Row())
            row.seconds += report.duration
            row.tests += report.when == "setup"
            row.failed += report.failed
            row.skipped += report.skipped
            if report.when == "teardown":
                for name, count in ({"rounds": 1} | told.get("figures", {})).items():
                    row.figures[name] = row.figures.get(name, 0) + count

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._config.getoption("faults"):
            return
        rows = [self._rows[number].cells(number) for number in SCENARIOS if number in self._rows]
        terminalreporter.section(f"faults, seed {seed()}")
        for cells in rows:
            terminalreporter.write_line(" | ".join(cells))
        if not self._config.getoption("write_table"):
            return
        if self._config.option.keyword or len(rows) < len(SCENARIOS):
            terminalreporter.write_line(f"{PAGE.name} stays as it is: only a part was run")
        else:
            write(PAGE, rows)


def write(page: Path, rows: list[tuple[str, ...]]) -> None:
    """Put the table between its marks on the page."""
    text = page.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    assert after, f"{page} has no place for the table"
    page.write_text(f"{before}{BEGIN}\n{told(rows)}{END}{after}", "utf-8")


def told(rows: list[tuple[str, ...]]) -> str:
    """Tell the rows as Markdown, with when and on what they were found and which scenarios are not there."""
    found_at = f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} cores"
    lines = [HEAD, ("---",) * len(HEAD), *rows]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    missing = "\n".join(f"- {numbers}: {why}." for numbers, why in NOT_YET.items())
    return (
        f"\nMeasured on {found_at}, with `FAULT_SEED={seed()} make test-faults`.\n"
        "A dash means that the figure does not apply.\n\n"
        f"{table}\n\nNot in the table:\n\n{missing}\n\n"
    )

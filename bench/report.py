"""Write bench/RESULTS.md from the readings of bench/results: the bars, each section's tables, where the figures come from.

python bench/report.py [--results FOLDER] [--page FILE]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import tables
from bars import BARS
from figures import Measured, load
from methods import HOW

HERE = Path(__file__).resolve().parent
WIDTH = 100  # columns of the page's prose
REASON = 160  # characters of why an engine is left out


@dataclass(frozen=True)
class Peer:
    """The report's notes on an engine."""

    promises: str
    settings: str
    each_settings: str = ""  # what else is set where each task is acknowledged by itself


def page(sections: Mapping[str, Measured], peers: Mapping[str, Peer], plots: frozenset[str]) -> str:
    """Return the whole page; `peers` are in the order of the tables, `plots` names the sections that have one."""
    order = [sections[name] for name in (*HOW, *sorted(sections.keys() - HOW.keys())) if name in sections]
    newest = max(order, key=lambda m: m.at, default=None)
    lines = ["# Speed: holdfast beside its peers", "", *_opening(order)]
    lines += ["", "## The bars", "", *tables.bars(BARS, sections)]
    for measured in order:
        lines += ["", f"## {measured.title}", "", *_section(measured, peers, newest)]
        if measured.section in plots:
            lines += ["", f"![{measured.title}](plots/{measured.section}.svg)"]
    if newest is not None:
        lines += ["", "## Where the figures come from", "", *_origin(order, newest, peers)]
    return "".join(f"{part}\n" for line in lines for part in _wrapped(line))


def _wrapped(line: str) -> list[str]:
    """Break a long line of prose or of a list; tables and pictures are lines as they are."""
    if len(line) <= WIDTH or line.startswith(("|", "![", "#")):
        return [line]
    indent = "  " if line.startswith("- ") else ""
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _opening(order: list[Measured]) -> Iterator[str]:
    yield (
        "Written by `make bench` from the readings in `results/`; how they are taken is told in [README.md](README.md). "
        "A figure is the median of the rounds, with the least and the most of them in brackets; more is better where "
        "nothing else is said. Engines take turns inside a round, on one PostgreSQL, and a ratio is the median of the "
        "ratios inside the rounds; it is inside the noise where their spread includes 1. The engines do not promise the "
        "same, so what each promises stands beside its figures. Another machine gives other figures; the ratios change "
        "less."
    )
    if len({(measured.commit, measured.dirty) for measured in order}) > 1:
        yield ""
        yield "**The sections were measured at different commits**: each says at which."
    quick = [measured.title for measured in order if measured.quick]
    if quick:
        yield ""
        yield f"**Measured with QUICK=1, at small sizes and not to be compared with a full run:** {'; '.join(quick)}."


def _section(measured: Measured, peers: Mapping[str, Peer], newest: Measured | None) -> Iterator[str]:
    if measured.section in HOW:
        yield HOW[measured.section]
    yield _mark(measured, newest)
    promises = {name: peer.promises for name, peer in peers.items()}
    yield from tables.readings(measured, promises)
    if measured.left_out:
        yield ""
        yield "Left out:"
        yield ""
        for engine, reason in measured.left_out.items():
            yield f"- {engine}: {plain(reason)}"


def _mark(measured: Measured, newest: Measured | None) -> str:
    rounds = "one round" if measured.rounds == 1 else f"{measured.rounds} rounds"
    said = [f"Measured {_moment(measured.at)} at {_commit(measured)}, {rounds}"]
    if size := tables.sizes(measured):
        said.append(size)
    if newest is not None and measured.commit != newest.commit:
        said.append(f"**not the commit of the newest section, {_commit(newest)}**")
    if measured.quick:
        said.append("**QUICK=1: small sizes**")
    return "; ".join(said) + "."


def _origin(order: list[Measured], newest: Measured, peers: Mapping[str, Peer]) -> Iterator[str]:
    yield "Repeat it with one command: `make bench` (all of it), `make bench ONLY=drain` (one section), `make bench QUICK=1` (small sizes)."
    yield ""
    yield f"Newest section: {_moment(newest.at)}, {_commit(newest)}."
    yield ""
    yield from tables.facts("machine", newest.machine)
    yield ""
    server = {"version": newest.server.get("version", "unknown"), **newest.server.get("settings", {})}
    yield from tables.facts("PostgreSQL", server)
    yield ""
    yield from tables.engines(order, {name: (peer.settings, peer.each_settings) for name, peer in peers.items()})
    yield ""
    yield "How noisy the machine was: a fixed loop of plain Python is timed beside every reading."
    yield ""
    yield from tables.noise(order)


def _commit(measured: Measured) -> str:
    return f"commit {measured.commit[:10]}" + (" with changes not committed" if measured.dirty else "")


def _moment(at: str) -> str:
    return datetime.fromisoformat(at).strftime("%Y-%m-%d %H:%M %Z").strip()


def plain(reason: str) -> str:
    """Shorten a reason, perhaps the end of a log, to one line without local paths."""
    line = re.sub(r"(?<![\w:/])/(?:[\w.+@-]+/)+", "", " ".join(reason.split()))
    return line if len(line) <= REASON else f"{line[: REASON - 1].rstrip()}…"


def draw(results: Path, folder: Path, python: Path) -> frozenset[str]:
    """Draw the plots with the bench's own Python, and return the existing ones; without it they do not change."""
    if python.exists():
        subprocess.run([python, HERE / "plots.py", results, folder], check=True)
    else:
        print("plots stay as they are: the Python that the peers are installed for draws them", file=sys.stderr)
    return frozenset(path.stem for path in folder.glob("*.svg"))


def write(results: Path = HERE / "results", target: Path = HERE / "RESULTS.md") -> None:
    """Write the page and its plots from the readings in `results`."""
    from engines import ENGINES
    from home import peers_python

    peers = {engine.name: Peer(engine.promises, engine.settings, engine.each_settings) for engine in ENGINES}
    plots = draw(results, target.parent / "plots", peers_python())
    target.write_text(page(load(results), peers, plots))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--page", type=Path, default=HERE / "RESULTS.md")
    options = parser.parse_args()
    write(options.results, options.page)


if __name__ == "__main__":
    main()

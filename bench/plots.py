"""Draw the readings as SVG files, one per section; run by report.py with the bench's own Python, which has matplotlib.

python bench/plots.py RESULTS FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import matplotlib as mpl
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from figures import Measured, Span, load
from tables import number

WIDTH = 7.6
PROCESSES = ("1 process", "2 processes")
# Told apart by lightness too, so that no plot needs colours: dark and light of one series each, ours and the others'.
OURS, OURS_LIGHT = "#0b5a99", "#8fbfe6"
BASELINE, BASELINE_LIGHT = "#a35a00", "#eebf80"
PEER, PEER_LIGHT = "#6b6b6b", "#c4c4c4"
INK = "#222222"
GRID = "#e4e4e4"
FONTS = ["DejaVu Sans", "Verdana", "Arial"]  # text stays text: small files, and the widest of these is measured
LINES = ("#6b6b6b", "#a0457e", "#2e7d5b", "#8a7a1f", "#5a5ab0", "#444444")
STYLES = ("--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("s", "^", "D", "v", "P", "X")


def drain(measured: Measured) -> Figure:
    return _bars(measured, PROCESSES, "tasks a second: one process (light), two (dark)")


def diamonds(measured: Measured) -> Figure:
    return _bars(measured, PROCESSES, "steps a second: one process (light), two (dark)")


def fan(measured: Measured) -> Figure:
    return _bars(measured, PROCESSES, "steps a second: one process (light), two (dark)")


def chain(measured: Measured) -> Figure:
    return _bars(measured, ("100 chains", "one chain"), "steps a second: a hundred chains (light), one alone (dark)")


def snapshot(measured: Measured) -> Figure:
    return _bars(measured, ("without", "held"), "tasks a second: no snapshot (light), one held open (dark)")


def growth(measured: Measured) -> Figure:
    """Draw each engine's rate relative to its rate with the fewest finished rows."""
    return _lines(measured, "rate, relative to beside 1 000", "finished tasks beside", is_relative=True)


def memory(measured: Measured) -> Figure:
    return _lines(measured, "resident memory, MiB", "share of the tasks done", is_relative=False)


def trickle(measured: Measured) -> Figure:
    """Draw a line from p50 to p99 per engine, the fastest at the top."""
    names = _by_median(measured, "p99", least_first=True)
    figure, axes = _canvas(0.36 * len(names) + 1.1)
    for place, name in enumerate(names):
        p50, p99 = measured.span(name, "p50"), measured.span(name, "p99")
        if p50 is None or p99 is None:
            continue
        dark, light = _shades(name)
        axes.plot([p50.median, p99.median], [place, place], color=light, linewidth=5, solid_capstyle="round", zorder=2)
        axes.plot(p50.median, place, "o", color=dark, markersize=8, zorder=3)
        axes.plot(p99.median, place, "D", color=dark, markersize=6.5, zorder=3)
        said = f"{number(p50.median)} / {number(p99.median)} ms"
        axes.annotate(said, (p99.median, place), (9, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_xscale("log")
    axes.margins(x=0.08)
    axes.set_xlim(right=axes.get_xlim()[1] * 2.2)  # room for what is written beside the last mark
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("milliseconds from the start's call to the handler: p50 (circle), p99 (diamond)")
    _engine_labels(axes, names)
    return figure


def cost(measured: Measured) -> Figure:
    """Draw holdfast's rate on each build of its database."""
    builds = [what for what in measured.whats() if measured.span("holdfast", what)]
    figure, axes = _canvas(0.42 * len(builds) + 1.0)
    for place, what in enumerate(builds):
        figure_of = measured.span("holdfast", what)
        if figure_of is not None:
            _bar(axes, figure_of, place, 0.62, OURS if place == 0 else PEER_LIGHT)
    axes.set_xlabel("steps a second")
    _engine_labels(axes, builds)
    _room_for_numbers(axes)
    return figure


def _bars(measured: Measured, pair: tuple[str, str], label: str) -> Figure:
    """Draw two bars per engine, the fastest at the top, with the spread as whiskers."""
    names = _by_median(measured, pair[0], least_first=False)
    figure, axes = _canvas(0.56 * len(names) + 1.1)
    for place, name in enumerate(names):
        dark, light = _shades(name)
        for what, offset, colour in ((pair[0], -0.2, light), (pair[1], 0.2, dark)):
            figure_of = measured.span(name, what)
            if figure_of is not None:
                _bar(axes, figure_of, place + offset, 0.37, colour)
    axes.set_xlabel(label)
    _engine_labels(axes, names)
    _room_for_numbers(axes)
    return figure


def _bar(axes: Axes, figure: Span, place: float, height: float, colour: str) -> None:
    axes.barh(place, figure.median, height, color=colour, zorder=2)
    if figure.rounds > 1:  # a pale line beneath: the whisker is seen on a dark bar too
        axes.plot([figure.least, figure.most], [place, place], color="white", linewidth=3, zorder=3)
        axes.plot([figure.least, figure.most], [place, place], color=INK, linewidth=1, zorder=3)
    end = max(figure.most, figure.median)
    axes.annotate(number(figure.median), (end, place), (5, 0), textcoords="offset points", va="center", fontsize=9)


def _lines(measured: Measured, label: str, below: str, *, is_relative: bool) -> Figure:
    """Draw one line per engine, labelled in the order of their last values."""
    whats = measured.whats()
    figure, axes = _canvas(3.6)
    ends: dict[str, float] = {}
    for name in measured.engines():
        spans = {
            place: measured.ratio((name, what), (name, whats[0])) if is_relative else measured.span(name, what)
            for place, what in enumerate(whats)
        }
        known = {place: figure_of for place, figure_of in spans.items() if figure_of is not None}
        if known:
            _line(axes, known, name, len(ends))
            ends[name] = known[max(known)].median
    axes.set_xticks(range(len(whats)), [what.removeprefix("beside ").removeprefix("at ") for what in whats])
    axes.set_ylim(bottom=0)
    axes.set_ylabel(label)
    axes.set_xlabel(below)
    axes.grid(visible=True, axis="y", color=GRID, linewidth=0.8)
    _line_names(axes, sorted(ends, key=lambda name: ends[name], reverse=True))
    return figure


def _line(axes: Axes, known: dict[int, Span], name: str, turn: int) -> None:
    """Draw one engine's line with its whiskers; `turn` selects its style."""
    places, spans = list(known), list(known.values())
    middle = [figure.median for figure in spans]
    reach = [[f.median - f.least for f in spans], [f.most - f.median for f in spans]]
    if name == "holdfast":
        look = {"color": OURS, "marker": "o", "linewidth": 2.8, "markersize": 7, "zorder": 4}
    else:
        colour = BASELINE if name == "baseline" else LINES[turn % len(LINES)]
        look = {"color": colour, "marker": MARKERS[turn % len(MARKERS)], "linestyle": STYLES[turn % len(STYLES)]}
        look |= {"linewidth": 1.6, "markersize": 5.5, "zorder": 3}
    axes.errorbar(places, middle, reach, capsize=3, label=name, **look)


def _line_names(axes: Axes, order: list[str]) -> None:
    handles, labels = axes.get_legend_handles_labels()
    by_name = dict(zip(labels, handles, strict=True))
    legend = axes.legend(
        [by_name[name] for name in order],
        order,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        handlelength=3.2,
        labelspacing=0.8,
    )
    _embolden(legend.get_texts())


def _by_median(measured: Measured, what: str, *, least_first: bool) -> list[str]:
    medians = {name: figure.median for name in measured.engines(what) if (figure := measured.span(name, what))}
    return sorted(medians, key=lambda name: medians[name], reverse=not least_first)


def _shades(name: str) -> tuple[str, str]:
    return {"holdfast": (OURS, OURS_LIGHT), "baseline": (BASELINE, BASELINE_LIGHT)}.get(name, (PEER, PEER_LIGHT))


def _canvas(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12), facecolor="white")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    return figure, axes


def _engine_labels(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)  # the first at the top
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.8)
    _embolden(axes.get_yticklabels())


def _embolden(labels: Iterable[Text]) -> None:
    """Highlight holdfast."""
    for label in labels:
        label.set_fontweight("bold" if label.get_text() == "holdfast" else "normal")


def _room_for_numbers(axes: Axes) -> None:
    axes.set_xlim(0, axes.get_xlim()[1] * 1.08)
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))


PLOTS: dict[str, Callable[[Measured], Figure]] = {
    draw.__name__: draw for draw in (drain, trickle, growth, snapshot, diamonds, fan, chain, memory, cost)
}


def main(results: Path, folder: Path) -> None:
    """Draw all readings; equal readings give equal files."""
    mpl.rcParams.update(
        {
            "svg.hashsalt": "holdfast",
            "svg.fonttype": "none",
            "font.sans-serif": FONTS,
            "font.size": 10,
            "axes.labelcolor": INK,
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    for name, measured in load(results).items():
        if name in PLOTS and measured.readings:
            PLOTS[name](measured).savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

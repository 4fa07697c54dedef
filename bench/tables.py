"""The tables of the report, as lines of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bars import Bar
from figures import Measured, Span, less_is_better, span

# The figure that an engine's others are compared with.
OWN_FIRST = {
    "growth": "beside 1 000",
    "snapshot": "without",
    "memory": "at 10 %",
    "cost": "as shipped",
    "producers": "beside it, hints made impossible",
    "widths": "10 wide",
}
SLOWED = 1.5  # a loop this much longer than its shortest was run on a slowed machine


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def bars(held_to: Iterable[Bar], sections: Mapping[str, Measured]) -> Iterator[str]:
    """List each bar with its figure and whether it is held."""
    return table(("what", "figure", "least to most", "bar", "held?"), (_bar(bar, sections) for bar in held_to))


def _bar(bar: Bar, sections: Mapping[str, Measured]) -> tuple[str, ...]:
    figure = bar.read(sections)
    limit = f"{'at most' if bar.at_most else 'at least'} {bar.limit:g}"
    if bar.is_goal:
        limit = f"goal, no bar: {limit}"
    if figure is None:
        return bar.title, "", "", limit, bar.verdict(figure)
    return (
        bar.title,
        number(figure.median),
        _spread(figure),
        limit,
        _verdict(bar, figure, is_quick=sections[bar.section].quick),
    )


def _verdict(bar: Bar, figure: Span, *, is_quick: bool) -> str:
    verdict = bar.verdict(figure)
    said: list[str] = [verdict]
    if bar.is_met(figure.least) != bar.is_met(figure.most):
        said.append("not in every round" if verdict == "held" else "though in some rounds")
    if is_quick:
        said.append("QUICK=1")
    return ", ".join(said)


def readings(measured: Measured, promises: Mapping[str, str]) -> Iterator[str]:
    """Show a section: every engine's figures with what it promises, holdfast's ratios to it, and its ratios to itself."""
    whats, names = measured.whats(), _ordered(measured.engines(), promises)
    if not names:
        return
    yield from ("", *_figures(measured, names, promises))
    if len(names) > 1:
        ours = [[_ratio(measured, ("holdfast", what), (name, what)) for what in whats] for name in names]
        yield from _ratios("holdfast to each", whats, names, ours)
    first = OWN_FIRST.get(measured.section)
    if first is not None:
        own = [[_ratio(measured, (name, what), (name, first)) for what in whats] for name in names]
        yield from _ratios(f"each to its own figure {first}", whats, names, own)


def sizes(measured: Measured) -> str:
    """Say how many tasks, steps or the like a figure is taken over, where engines differ for each of them."""
    largest: dict[str, int] = {}
    for reading in measured.readings:
        largest[reading["engine"]] = max(largest.get(reading["engine"], 0), int(reading.get("n", 0)))
    groups = {size: [name for name in largest if largest[name] == size] for size in dict.fromkeys(largest.values())}
    if len(groups) == 1:
        return "".join(f"n = {size:,}" for size in groups if size)
    return "; ".join(f"n = {size:,} for {', '.join(names)}" for size, names in groups.items() if size)


def _figures(measured: Measured, names: Sequence[str], promises: Mapping[str, str]) -> Iterator[str]:
    whats = measured.whats()
    head = ("engine", *(_heading(what, measured.unit(what)) for what in whats), "what it promises")
    return table(head, ((name, *(_figure(measured, name, w) for w in whats), promises.get(name, "")) for name in names))


def _ratios(title: str, whats: Sequence[str], names: Sequence[str], cells: Iterable[Sequence[str]]) -> Iterator[str]:
    rows = [(name, *row) for name, row in zip(names, cells, strict=True) if any(row)]
    if rows:
        yield from ("", *table((title, *whats), rows))


def _heading(what: str, unit: str) -> str:
    return f"{what}, {unit}" + (" (less is better)" if less_is_better(unit) else "")


def _figure(measured: Measured, engine: str, what: str) -> str:
    figure, unit = measured.span(engine, what), measured.unit(what, engine)
    if figure is None:
        return ""
    return f"{number(figure.median)}{f' {unit}' if unit != measured.unit(what) else ''} ({_spread(figure)})"


def _ratio(measured: Measured, ours: tuple[str, str], theirs: tuple[str, str]) -> str:
    """Write a paired ratio; nothing of a figure to itself, nor of two that are not counted in the same unit."""
    ratio = measured.ratio(ours, theirs)
    if ratio is None or ours == theirs or measured.unit(ours[1], ours[0]) != measured.unit(theirs[1], theirs[0]):
        return ""
    noise = ", inside the noise" if ratio.rounds > 1 and ratio.includes(1) else ""
    return f"{number(ratio.median)} ({_spread(ratio)}){noise}"


def engines(order: Iterable[Measured], settings: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """List the engines' versions, and how they were set: as a rule, and for each task by itself."""
    versions: dict[str, list[str]] = {}
    for measured in order:
        for engine, version in measured.versions.items():
            known = versions.setdefault(engine, [])
            if version not in known:
                known.append(version)
    return table(
        ("engine", "version", "how it is set", "and in the steady load"),
        ((name, ", ".join(versions[name]), *settings.get(name, ("", ""))) for name in _ordered(versions, settings)),
    )


def _ordered(names: Iterable[str], order: Iterable[str]) -> list[str]:
    places = {name: place for place, name in enumerate(order)}
    return sorted(names, key=lambda name: places.get(name, len(places)))


def noise(order: Iterable[Measured]) -> Iterator[str]:
    """Say how long the fixed loop took beside each section's readings, and how often much longer than its shortest."""
    spins = {measured.title: _column(measured, "spin_ms") for measured in order}
    shortest = min((value for values in spins.values() for value in values), default=0.0)
    head = (
        "section",
        "loop, median ms",
        "least to most",
        f"readings above {SLOWED} times the shortest",
        "steal, most %",
    )
    steals = {measured.title: _column(measured, "steal_pct") for measured in order}
    return table(head, (_noise(title, values, shortest, steals[title]) for title, values in spins.items()))


def _noise(title: str, spins: list[float], shortest: float, steals: list[float]) -> tuple[str, ...]:
    figure = span(spins)
    if figure is None:
        return title, "", "", "", ""
    slowed = sum(value > SLOWED * shortest for value in spins)
    return title, number(figure.median), _spread(figure), f"{slowed} of {len(spins)}", number(max(steals, default=0.0))


def _column(measured: Measured, name: str) -> list[float]:
    return [float(reading[name]) for reading in measured.readings if reading.get(name) is not None]


def facts(title: str, known: Mapping[str, Any]) -> Iterator[str]:
    return table((title, ""), ((name, str(value)) for name, value in known.items()))


def number(value: float) -> str:
    """Write a figure with its significant digits."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 or not value else f"{value:.2g}"


def _spread(figure: Span) -> str:
    return "one round" if figure.rounds == 1 else f"{number(figure.least)} to {number(figure.most)}"

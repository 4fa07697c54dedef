"""From readings to the page: medians, ratios inside a round, bars at their edge, those left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import report
import tables
from bars import BARS, Bar
from figures import Measured, load
from methods import HOW
from report import Peer

PEERS = {
    "holdfast": Peer("journals every move", "defaults"),
    "baseline": Peer("bare SQL", "batches of 500"),
    "pgqueuer": Peer("deletes finished tasks", "batch 1000"),
}
AT_LEAST = Bar("drain", "drain", "1 process", 1.5, ("pgqueuer", "1 process"))
AT_MOST = Bar("idle", "idle", "idle", 12.0, at_most=True)


def measured(
    section: str = "drain", what: str = "1 process", unit: str = "tasks/s", **engines: list[float]
) -> Measured:
    """Make a section's readings: each engine's values, a round each."""
    readings = [
        {
            "engine": engine,
            "what": what,
            "round": turn,
            "value": value,
            "unit": unit,
            "spin_ms": 10.0 + turn,
            "steal_pct": 0.5,
        }
        for engine, values in engines.items()
        for turn, value in enumerate(values, start=1)
    ]
    return Measured(
        section=section,
        title=f"Section {section}",
        at="2026-01-02T03:04:05+00:00",
        commit="0123456789",
        dirty=False,
        quick=False,
        rounds=3,
        readings=readings,
        machine={"cores": 2, "cpu": "A Processor"},
        server={"version": "18.4", "settings": {"jit": "off"}},
        versions=dict.fromkeys(engines, "1.0"),
    )


def changed(section: Measured, **fields: object) -> Measured:
    return Measured(**{**vars(section), **fields})  # type: ignore[arg-type]


def page(*sections: Measured) -> str:
    return report.page({section.section: section for section in sections}, PEERS, frozenset())


def row(text: str, start: str) -> str:
    """Find the one row of a table that begins so."""
    (found,) = [line for line in text.splitlines() if line.startswith(f"| {start} |")]
    return found


def test_a_figure_is_the_median_with_the_least_and_the_most():
    text = page(measured(holdfast=[300.0, 100.0, 200.0]))

    assert "| holdfast | 200 (100 to 300) | journals every move |" in text


def test_a_ratio_is_paired_inside_each_round():
    # The medians' own ratio would be 1.0; the rounds say 2.0, 0.5 and 2.0.
    text = page(measured(holdfast=[200.0, 100.0, 400.0], pgqueuer=[100.0, 200.0, 200.0]))

    assert "| pgqueuer | 200 (100 to 200) | deletes finished tasks |" in text
    assert "| pgqueuer | 2.00 (0.50 to 2.00), inside the noise |" in text


def test_a_ratio_whose_rounds_agree_is_not_called_noise():
    text = page(measured(holdfast=[200.0, 210.0], pgqueuer=[100.0, 100.0]))

    assert "| pgqueuer | 2.05 (2.00 to 2.10) |" in text


def test_a_round_that_only_one_of_the_two_has_is_not_paired():
    section = measured(holdfast=[100.0, 300.0], pgqueuer=[50.0])

    ratio = section.ratio(("holdfast", "1 process"), ("pgqueuer", "1 process"))

    assert ratio is not None
    assert (ratio.median, ratio.rounds) == (2.0, 1)


def test_one_round_has_no_spread_and_is_not_called_noise():
    text = page(measured(holdfast=[100.0], pgqueuer=[100.0]))

    assert "| pgqueuer | 100 (one round) |" in text
    assert "| pgqueuer | 1.00 (one round) |" in text


def test_an_engine_counted_in_another_unit_says_so_and_has_no_ratio():
    section = measured("idle", "idle", "statements/min", holdfast=[10.0], celery=[90.0])
    section.readings[-1]["unit"] = "commands/min"

    text = page(section)

    assert "| engine | idle, statements/min (less is better) | what it promises |" in text
    assert "| celery | 90.0 commands/min (one round) |" in text
    assert "holdfast to each" not in text


def test_the_cost_of_history_is_told_of_each_engine_by_itself():
    few = measured("growth", "beside 1 000", holdfast=[100.0, 200.0], pgqueuer=[50.0, 50.0])
    many = measured("growth", "beside 100 000", holdfast=[90.0, 180.0], pgqueuer=[20.0, 30.0])

    text = page(changed(few, readings=few.readings + many.readings))

    assert "| each to its own figure beside 1 000 | beside 1 000 | beside 100 000 |" in text
    assert "| holdfast |  | 0.90 (0.90 to 0.90) |" in text
    assert "| pgqueuer |  | 0.50 (0.40 to 0.60) |" in text


@pytest.mark.parametrize(
    ("value", "written"), [(12345.6, "12,346"), (99.96, "100.0"), (4.567, "4.57"), (0.00367, "0.0037"), (0.0, "0.00")]
)
def test_a_figure_has_the_digits_that_it_deserves(value: float, written: str):
    assert tables.number(value) == written


@pytest.mark.parametrize(("ours", "verdict"), [(150.0, "held"), (149.9, "not held")])
def test_a_figure_on_the_bar_is_held_and_one_beneath_is_not(ours: float, verdict: str):
    section = measured(holdfast=[ours], pgqueuer=[100.0])

    assert AT_LEAST.verdict(AT_LEAST.read({"drain": section})) == verdict


@pytest.mark.parametrize(("ours", "verdict"), [(12.0, "held"), (12.1, "not held")])
def test_a_figure_that_must_stay_below_its_bar_may_reach_it(ours: float, verdict: str):
    section = measured("idle", "idle", "statements/min", holdfast=[ours])

    assert AT_MOST.verdict(AT_MOST.read({"idle": section})) == verdict


def test_a_bar_without_readings_is_not_measured():
    text = page(measured(holdfast=[200.0]))

    assert row(text, "drain, one process, to pgqueuer").endswith("|  |  | at least 1.5 | not measured |")
    assert row(text, "trickle, p50 in ms").endswith("| not measured |")


def test_a_bar_says_when_the_rounds_do_not_agree():
    lines = "\n".join(
        tables.bars([AT_LEAST], {"drain": measured(holdfast=[140.0, 160.0, 170.0], pgqueuer=[100.0] * 3)})
    )

    assert row(lines, "drain") == "| drain | 1.60 | 1.40 to 1.70 | at least 1.5 | held, not in every round |"


def test_an_engine_that_was_left_out_stands_with_its_reason_on_one_line():
    text = page(changed(measured(holdfast=[1.0]), left_out={"pg-boss": "failed:\n  File /some/where/boss.mjs, line 4"}))

    assert "- pg-boss: failed: File boss.mjs, line 4\n" in text


def test_a_long_reason_is_cut_and_an_address_is_left_alone():
    assert report.plain("x" * 1000) == "x" * (report.REASON - 1) + "…"
    assert report.plain("no answer from redis://127.0.0.1:6379/0") == "no answer from redis://127.0.0.1:6379/0"


def test_sections_of_different_commits_and_quick_ones_are_marked():
    older = changed(measured(holdfast=[1.0]), commit="aaaaaaaaaa", dirty=True, at="2026-01-01T00:00:00+00:00")
    text = page(older, changed(measured("bulk", holdfast=[1.0]), quick=True))

    assert "**The sections were measured at different commits**" in text
    said = " ".join(text.split())  # the page is wrapped
    assert "at commit aaaaaaaaaa with changes not committed, 3 rounds; **not the commit of the newest section" in said
    assert "not to be compared with a full run:** Section bulk." in text


def test_sections_of_one_whole_run_carry_no_marks():
    text = page(measured(holdfast=[1.0]), measured("bulk", holdfast=[1.0]))

    assert "different commits" not in text
    assert "QUICK=1:" not in text


def test_where_the_figures_come_from_is_told():
    text = page(measured(holdfast=[1.0, 2.0], pgqueuer=[1.0, 2.0]))

    for expected in (
        "| cpu | A Processor |",
        "| version | 18.4 |",
        "| jit | off |",
        "| pgqueuer | 1.0 | batch 1000 |  |",
    ):
        assert expected in text
    assert "| Section drain | 11.5 | 11.0 to 12.0 | 0 of 4 | 0.50 |" in text
    assert "`make bench`" in text


def test_nothing_measured_gives_a_page_that_says_so_of_every_bar():
    assert page().count("not measured") == len(BARS)


def test_files_are_read_by_their_section_and_fields_of_later_versions_do_not_matter(tmp_path: Path):
    content = {**vars(measured(holdfast=[1.0])), "more": 1}
    (tmp_path / "drain.json").write_text(json.dumps(content))

    assert load(tmp_path)["drain"] == measured(holdfast=[1.0])


@pytest.mark.parametrize("section", ["drain", "growth"])
def test_a_section_in_which_everything_failed_still_says_why(section: str):
    text = page(changed(measured(section), left_out={"holdfast": "failed: no server"}))

    assert "- holdfast: failed: no server" in text
    assert "| Section " + section + " |  |  |  |  |" in text


def test_sizes_are_told_and_where_engines_differ_of_each():
    section = measured(holdfast=[1.0], pgqueuer=[1.0], dbos=[1.0])
    for reading, size in zip(section.readings, (100_000, 100_000, 5_000), strict=True):
        reading["n"] = size

    assert tables.sizes(section) == "n = 100,000 for holdfast, pgqueuer; n = 5,000 for dbos"
    assert tables.sizes(changed(section, readings=section.readings[:2])) == "n = 100,000"
    assert tables.sizes(measured(holdfast=[1.0])) == ""


def test_a_plot_is_shown_where_there_is_one():
    section = measured(holdfast=[1.0])

    assert "![Section drain](plots/drain.svg)" in report.page({"drain": section}, PEERS, frozenset({"drain"}))
    assert "plots/" not in page(section)


def test_each_section_that_there_is_says_how_it_is_timed():
    assert {path.stem for path in (report.HERE / "sections").glob("[a-z]*.py")} == HOW.keys()


def test_each_bar_is_read_from_a_section_that_there_is():
    assert {bar.section for bar in BARS} <= HOW.keys()

"""The parts of the bench that decide: percentiles, what a load held, which engines can run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import engines
import home
import pairs
from processes import COUNTER, Count, Probes
from readings import Reading, Section, percentile
from sections.steady import judge


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([7.0], 0.99, 7.0), ([3.0, 1.0, 2.0], 0.5, 2.0), ([4.0, 3.0, 2.0, 1.0], 0.5, 2.0), (range(1, 101), 0.99, 99)],
)
def test_a_percentile_is_a_value_that_was_read(values: Any, share: float, expected: float) -> None:
    assert percentile(values, share) == expected


def test_a_percentile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_a_load_is_held_by_what_began_while_it_lasted() -> None:
    sent = [0.0, 1.0, 2.0, 3.0, 4.0]

    held = judge([(at, at + 0.5) for at in sent])

    assert (held.sent, held.begun, held.p50, held.p99) == (1.25, 1.0, 0.5, 0.5)


def test_pairs_are_summed_up_by_the_median_of_their_ratios() -> None:
    (line,) = pairs.summary("drain", "abc1234", {"1 process": [0.9, 1.3, 1.0]})

    assert "1 process: median 1.000 of abc1234 (0.900 to 1.300)" in line


def test_an_engine_says_what_it_lacks() -> None:
    boss, celery, ours = (engines.named(name) for name in ("pg-boss", "celery+redis", "holdfast"))

    assert engines.lack(boss, has_node=False, has_redis=True) == "node 22 or npm is not there"
    assert engines.lack(celery, has_node=True, has_redis=False) == "redis-server is not there"
    assert engines.lack(ours, has_node=False, has_redis=False) is None


def test_every_engine_has_its_adapter_its_settings_and_its_promises() -> None:
    for engine in engines.ENGINES:
        assert (home.ADAPTERS / engine.adapter).is_file()
        assert engine.settings
        assert engine.promises
        assert engine.each_settings


def test_an_unknown_engine_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"rq; .*holdfast, baseline"):
        engines.named("rq")


def test_the_lists_of_peers_are_pinned_and_name_no_place() -> None:
    packages = [line for line in (home.PEERS / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    lock = json.loads((home.PEERS / "package-lock.json").read_text())

    assert all("==" in line for line in packages)
    assert not any("resolved" in package for package in lock["packages"].values())


def test_probes_add_up_what_worker_processes_have_counted(tmp_path: Path) -> None:
    probes = Probes(tmp_path / "probes")
    (probes.folder / "1.count").write_bytes(COUNTER.pack(3, 10.0, 12.0))
    (probes.folder / "2.count").write_bytes(COUNTER.pack(4, 9.0, 11.0))
    (probes.folder / "3.count").write_bytes(COUNTER.pack(0, 0.0, 0.0))
    (probes.folder / "1.moments").write_text("1.0 1.5\n2.0 2.25\n3.0")

    assert probes.counts().count(Count(4, 9.0, 11.0)) == 1
    assert (probes.calls(), probes.first(), probes.last()) == (7, 9.0, 12.0)
    assert probes.latencies() == [0.5, 0.25]


def test_a_section_is_saved_with_a_reading_a_line(tmp_path: Path) -> None:
    section = Section("drain", "Drain", quick=False, rounds=3, server={"version": "18"}, versions={"holdfast": "1"})
    section.readings.append(Reading("holdfast", "1 process", 1, 41.5, "tasks/s", 11.0, 0.0, {"n": 9}))
    section.left_out["pg-boss"] = "node 22 or npm is not there"

    text = section.save(tmp_path).read_text()

    assert sum(line.lstrip().startswith('{"engine"') for line in text.splitlines()) == 1
    read = json.loads(text)
    assert read["readings"] == [
        {"engine": "holdfast", "what": "1 process", "round": 1, "value": 41.5, "unit": "tasks/s"}
        | {"spin_ms": 11.0, "steal_pct": 0.0, "n": 9}
    ]
    assert read["left_out"] == {"pg-boss": "node 22 or npm is not there"}

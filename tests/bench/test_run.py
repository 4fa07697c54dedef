"""The bench itself, in its smallest size: it must still measure when somebody needs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / "bench/run.py"
TASKS = "300"


@pytest.fixture
def home() -> Iterator[str]:
    """A short path, as the server's socket needs it; in memory where that can be: nothing here has to last."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="hf-bench-", dir=memory if memory.is_dir() else "/tmp") as folder:
        yield folder


def test_a_run_measures_ours_and_writes_down_what_it_read(home: str, tmp_path: Path) -> None:
    options = ["--only", "drain", "--quick", "--engines", "holdfast,baseline", "--tasks", TASKS]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST")}

    ran = subprocess.run(
        [sys.executable, RUN, *options, "--results", tmp_path],
        env={**environment, "BENCH_HOME": home},
        capture_output=True,
        text=True,
    )

    assert ran.returncode == 0, ran.stderr
    written = json.loads((tmp_path / "drain.json").read_text())
    assert written["quick"] is True
    assert written["left_out"] == {}
    assert written["server"]["settings"]["synchronous_commit"] == "on"
    figures = {(row["engine"], row["what"]) for row in written["readings"] if row["value"] > 0 and row["spin_ms"] > 0}
    assert figures == {(e, w) for e in ("holdfast", "baseline") for w in ("1 process", "2 processes")}
    assert list(Path(home).iterdir()) == []

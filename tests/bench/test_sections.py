"""The sections that measure ours alone, in their smallest size, and the parts that they stand on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import history
import statement_log
from holdfast import Holdfast, testing

RUN = Path(__file__).resolve().parents[2] / "bench/run.py"


@pytest.mark.parametrize(
    ("section", "whats"),
    [
        ("hot", {"tasks", "one run", "diamonds"}),
        ("cost", {"as shipped", "without the guard", "without the journal", "without both"}),
        ("targets", {"start"}),
        ("diamonds", {"1 process", "2 processes"}),
        ("memory", {"at 10 %", "at 50 %", "at 100 %"}),
    ],
)
def test_a_section_measures_holdfast(section: str, whats: set[str], tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST")}
    options = ["--only", section, "--quick", "--engines", "holdfast", "--tasks", "700", "--results", tmp_path]
    with tempfile.TemporaryDirectory(prefix="hf-bench-", dir="/tmp") as home:
        ran = subprocess.run(
            [sys.executable, RUN, *options], env={**environment, "BENCH_HOME": home}, capture_output=True, text=True
        )

    assert ran.returncode == 0, ran.stderr
    written: dict[str, Any] = json.loads((tmp_path / f"{section}.json").read_text())
    assert {row["what"] for row in written["readings"] if row["value"] > 0} == whats

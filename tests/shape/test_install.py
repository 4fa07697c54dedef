"""The distribution: its name, its extras, every line that installs it, and the development install of the checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest

import holdfast

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PROSE = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "examples").rglob("*.*"),
]
INSTALLED = re.compile(r"pip install ['\"]?([a-z][\w-]*)(?:\[([a-z,]+)\])?['\"]?")
OF_PIP = """#!/bin/sh
echo "$*" >>asked
echo '{"dir_info": {"editable": true}}' >.venv/lib/python3.11/site-packages/holdfast_pg-1.dist-info/direct_url.json
"""


def test_the_embedded_server_comes_with_its_extra_alone() -> None:
    """It is 73 MB, and there is none for musl."""
    found = metadata("holdfast-pg")
    of_server = [each for each in found.get_all("Requires-Dist") or [] if "pgserver" in each]

    assert {each.partition("extra == ")[2] for each in of_server} == {"'embedded'", "'dev'"}
    assert {"embedded", "http", "otel", "yaml"} <= set(found.get_all("Provides-Extra") or [])


def test_the_metadata_is_complete() -> None:
    found = metadata("holdfast-pg")
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(found.get_all("Classifier") or []))

    assert pythons == ["3.11", "3.12", "3.13", "3.14"]
    assert all(found[name] for name in ("Author", "Summary", "Description", "License-Expression", "Keywords"))


def test_every_install_line_names_our_distribution_and_extras_that_it_has() -> None:
    """`holdfast` on the package index belongs to another project."""
    lines = {
        (name, extra, page.name)
        for page in PROSE
        if page.name != "CHANGELOG.md"
        for name, extras in INSTALLED.findall(page.read_text("utf-8"))
        for extra in extras.split(",")
    }
    known = {"", *PROJECT["optional-dependencies"]}

    assert {line for line in lines if line[0] == "holdfast"} == set()
    assert len({line for line in lines if line[0] == PROJECT["name"]}) >= 4
    assert {line for line in lines if line[0] == PROJECT["name"] and line[1] not in known} == set()


def test_the_tests_run_on_the_checkout_and_not_on_a_copy() -> None:
    """`pip install .` makes one; `make setup` installs the checkout again."""
    assert Path(holdfast.__file__).is_relative_to(ROOT / "src")


@pytest.mark.parametrize("is_copy", [False, True], ids=["editable", "a copy"])
def test_setup_notices_a_copy_in_the_virtual_environment_and_replaces_it(tmp_path: Path, *, is_copy: bool) -> None:
    """A stand-in for pip notes what it was asked."""
    tree = _tree(tmp_path, has_copy=is_copy)

    ran = subprocess.run([tree / ".ci" / "venv"], capture_output=True, text=True, timeout=60)

    asked = (tree / "asked").read_text() if (tree / "asked").exists() else ""
    assert (ran.returncode, "--no-deps -e ." in asked, "a copy of the package" in ran.stderr) == (0, is_copy, is_copy)


def _tree(folder: Path, *, has_copy: bool) -> Path:
    """Make a checkout whose environment was set up by its own script."""
    for name in (".ci/venv", "pyproject.toml", "constraints.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    record = folder / ".venv" / "lib" / "python3.11" / "site-packages" / "holdfast_pg-1.dist-info" / "direct_url.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"dir_info": {}}' if has_copy else '{"dir_info": {"editable": true}}')
    pip = folder / ".venv" / "bin" / "python"
    pip.parent.mkdir()
    pip.write_text(OF_PIP)
    pip.chmod(0o755)
    stamp = subprocess.run(
        ["sh", "-c", "{ pwd -P; python3 -V; cat pyproject.toml constraints.txt; } | cksum"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (folder / ".venv" / "installed").write_text(stamp.stdout)
    return folder

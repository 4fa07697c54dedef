"""Other processes, other users and another copy of the wheel, for tests that need them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import holdfast
from holdfast.embedded import binary

SOURCES = Path(holdfast.__file__).parents[1]
PACKAGES = binary("postgres").parents[3]
ENSURE = "import sys, pathlib; from holdfast import embedded; print(embedded.ensure(pathlib.Path(sys.argv[1])))"


def path_to(*folders: Path) -> dict[str, str]:
    """The environment in which a Python finds first what is in folders, then our package and those that it needs."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (*folders, SOURCES, PACKAGES)))}


def ensuring(home: Path, *, python: str = sys.executable, prefix: tuple[str, ...] = (), **options) -> subprocess.Popen:
    """Start a process that starts the server of a home and ends."""
    options = {"env": path_to(), "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen([*prefix, python, "-c", ENSURE, str(home)], **options)


def output(process: subprocess.Popen) -> str:
    """Wait for a process that must succeed, and give what it printed."""
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    return out.strip()


def copy_of_the_wheel(folder: Path) -> Path:
    """Put the wheel's files into another folder, which then goes onto PYTHONPATH."""
    wheel = binary("postgres").parents[2]
    for source in (wheel, *wheel.parent.glob(f"{wheel.name}.libs")):
        shutil.copytree(
            source, folder / source.name, copy_function=link_or_copy, ignore=shutil.ignore_patterns("pginstall")
        )
    return folder


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def as_user(name: str) -> tuple[str, ...]:
    """What a command is started with to run as that user; for root."""
    return ("setpriv", f"--reuid={name}", f"--regid={name}", "--clear-groups", "--inh-caps=-all", "--")


def python_of(name: str) -> str | None:
    """A Python that this user can run with our package in it; the one that runs the tests may lie in root's home."""
    ours = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{ours}", f"/usr/local/bin/{ours}"):
        probe = [*as_user(name), python, "-c", "from holdfast import embedded; embedded.binary('postgres')"]
        if subprocess.run(probe, env=path_to(), capture_output=True, cwd="/", check=False).returncode == 0:
            return python
    return None

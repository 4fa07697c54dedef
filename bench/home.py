"""The folder of everything that the bench makes (BENCH_HOME, or .bench in the project's root), with the peers' programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ADAPTERS = HERE / "adapters"
PEERS = HERE / "peers"
NODE_LEAST = 22


def home() -> Path:
    """Return the folder of the peers' programs, logs and the server's data."""
    return Path(os.environ.get("BENCH_HOME") or ROOT / ".bench").resolve()


def peers_python() -> Path:
    """Return the peers' interpreter; `ensure_python` installs it."""
    return home() / "venv/bin/python"


def node_home() -> Path:
    """Return the folder of node_modules; `ensure_node` fills it."""
    return home() / "node"


@cache
def node() -> Path | None:
    """Find a recent enough node: on the PATH, or the npm package of that name."""
    own = node_home() / "node_modules/node/bin/node"
    for candidate in (shutil.which("node"), own):
        if candidate and Path(candidate).exists() and _node_major(Path(candidate)) >= NODE_LEAST:
            return Path(candidate)
    return None


def can_have_node() -> bool:
    """Return whether npm is installed; it installs the node peers and, if needed, node itself."""
    return node() is not None if _is_made(node_home(), _wanted_node()) else shutil.which("npm") is not None


def ensure_python() -> None:
    """Make the peers' virtual environment, once per list of versions."""
    venv, wanted = home() / "venv", (PEERS / "requirements.txt").read_text()
    if _is_made(venv, wanted):
        return
    _say(f"installing the Python peers into {venv} (once, a minute or two)")
    shutil.rmtree(venv, ignore_errors=True)
    _run([sys.executable, "-m", "venv", "--without-pip", str(venv)])
    _run([sys.executable, "-m", "pip", "--python", str(peers_python()), "install", "-qq", "--no-input", "--root-user-action=ignore",
          "--disable-pip-version-check", "-r", str(PEERS / "requirements.txt")])  # fmt: skip
    _mark_made(venv, wanted)


def ensure_node() -> None:
    """Install the node peers, and node if the one on the PATH is too old, once per list of versions."""
    folder, wanted = node_home(), _wanted_node()
    if _is_made(folder, wanted):
        return
    _say(f"installing the node peers into {folder} (once, under a minute)")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PEERS / name, folder / name)
    _run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel", "error", "--prefix", str(folder)])
    node.cache_clear()
    _mark_made(folder, wanted)


def package_version(package: str) -> str:
    """Return the installed version of a peer's package."""
    manifest = node_home() / "node_modules" / package / "package.json"
    if manifest.exists():
        return str(json.loads(manifest.read_text())["version"])
    name = package.replace("-", "_")
    for found in (home() / "venv/lib").glob(f"python*/site-packages/{name}-*.dist-info"):
        return found.name.removeprefix(f"{name}-").removesuffix(".dist-info")
    return "of unknown version"


def _wanted_node() -> str:
    return (PEERS / "package.json").read_text() + (PEERS / "package-lock.json").read_text()


def _is_made(folder: Path, wanted: str) -> bool:
    mark = folder / "installed"
    return mark.exists() and mark.read_text() == wanted


def _mark_made(folder: Path, wanted: str) -> None:
    (folder / "installed").write_text(wanted)


def _node_major(program: Path) -> int:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return int(said.strip().lstrip("v").split(".")[0] or 0) if said else 0


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {(done.stderr or done.stdout)[-600:]}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

"""The fixtures that pytest finds by itself, as the guide shows them; and a server that goes with its owner."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from holdfast.embedded.locks import until

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "testing.md"
HOLDER = """
import sys
from holdfast.testing import embedded_template
with embedded_template() as template, template.clone() as dsn:
    print(dsn, flush=True)
    sys.stdin.read()
"""


def environment(folder: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "PYTEST_"))}
    return clean | {"TMPDIR": str(folder)}


@pytest.fixture
def folder(tmp_path):
    """A folder that the server's user can reach."""
    for part in (tmp_path, *tmp_path.parents):
        if part.stat().st_uid == os.geteuid() and part != Path("/") and not part.stat().st_mode & 0o001:
            part.chmod(part.stat().st_mode | 0o001)
    return tmp_path


def test_the_example_of_the_guide_runs(folder):
    """Deliver: each code block runs."""
    for name, text in re.findall(r"^```python (\S+)\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        (folder / name).write_text(text)

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"],
        cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=100,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "5 passed" in ran.stdout
    assert not list(folder.glob("holdfast-*"))


def test_a_server_for_tests_goes_with_its_owner_also_when_that_is_killed(folder):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout.readline().startswith(b"host=") or holder.poll() is None
        assert list(folder.glob("holdfast-*/home/pgdata/postmaster.pid"))
        holder.send_signal(signal.SIGKILL)

        assert until(lambda: not list(folder.glob("holdfast-*")), within=timedelta(seconds=60))
        assert until(lambda: not processes_of(folder), within=timedelta(seconds=60))
    finally:
        holder.kill()
        holder.communicate()


def processes_of(folder):
    return [p.pid for p in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(p.info["cmdline"] or [])]

"""The server process of a home: finds and verifies it, launches it independently of us, and stops it."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

from holdfast.embedded import binaries, cluster, locks
from holdfast.embedded.failure import failed
from holdfast.embedded.folders import Home
from holdfast.embedded.rights import Identity, command

START_WAIT = timedelta(seconds=60)
FAST_WAIT = timedelta(seconds=30)
IMMEDIATE_WAIT = timedelta(seconds=10)
# The shell starts the server in the background and ends, so that the server is not our child and leaves no zombie.
LAUNCH = '"$@" </dev/null >>"$0" 2>&1 & echo $!'


@dataclass(frozen=True)
class Postmaster:
    """The running server, as its pid file describes and its process confirms."""

    process: psutil.Process
    started_at: datetime
    phase: str

    @property
    def is_ready(self) -> bool:
        return self.phase == "ready"

    @property
    def is_starting(self) -> bool:
        return self.phase == "starting"

    @property
    def has_programs(self) -> bool:
        """Return whether its files still exist; removing a virtual environment deletes them under a running server."""
        with suppress(psutil.Error, IndexError):
            return Path(self.process.cmdline()[0]).exists()
        return False


def find(place: Home) -> Postmaster | None:
    """Find the server of this home; a pid file alone proves nothing, because its id may now be another program's."""
    try:
        lines = (place.pgdata / "postmaster.pid").read_text().splitlines()
        process = psutil.Process(int(lines[0]))
        if f"cluster_name={place.mark}" not in process.cmdline():
            return None
        phase = lines[7].strip() if len(lines) > 7 else "starting"
        return Postmaster(process, datetime.fromtimestamp(int(lines[2]), UTC), phase)
    except (OSError, IndexError, ValueError, psutil.Error):
        return None


def launch(place: Home, identity: Identity, server_lock: int) -> None:
    """Start the server in its own session, and wait until it accepts connections."""
    _clear_leftovers(place)
    postgres = binaries.binary("postgres")
    sockets = str(place.sockets) if place.short_folder else "../run"
    options = ("-D", cluster.data_argument(place.pgdata, identity), "-k", sockets, "-c", f"cluster_name={place.mark}")
    place.startup_log.write_bytes(b"")
    started = subprocess.run(
        ["/bin/sh", "-c", LAUNCH, str(place.startup_log), *command(identity, postgres, *options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=place.pgdata,
        env=cluster.environment(),
        umask=0o077,
        start_new_session=True,
        pass_fds=(server_lock,),
        check=True,
    )
    wait_until_ready(place, int(started.stdout))


def wait_until_ready(place: Home, pid: int) -> None:
    """Wait until the server accepts connections; raise if it ends or takes too long."""

    def is_settled() -> bool:
        postmaster = find(place)
        return (postmaster is not None and postmaster.is_ready) or not _runs_with(pid)

    in_time = locks.until(is_settled, within=START_WAIT)
    postmaster = find(place)
    if postmaster is not None and postmaster.is_ready:
        return
    if in_time:
        raise failed(
            f"the embedded PostgreSQL in {place.folder} ended while it started",
            then="fix what its log reports and retry, or set HOLDFAST_DSN to your own server",
            logs=logs(place),
        )
    raise failed(
        f"the embedded PostgreSQL in {place.folder} is still starting after {START_WAIT.seconds} seconds",
        then="it continues, as it may be recovering after a crash: read its log and retry later",
        logs=logs(place),
    )


def stop(place: Home, postmaster: Postmaster) -> None:
    """Stop the server: end its connections and, if that takes too long, its processes."""
    process = postmaster.process
    for number, wait in ((signal.SIGINT, FAST_WAIT), (signal.SIGQUIT, IMMEDIATE_WAIT)):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
        if locks.until(lambda: not _runs(process), within=wait):
            break
    if not locks.until(lambda: not locks.is_held(place.server_lock), within=IMMEDIATE_WAIT):
        raise failed(
            f"the embedded PostgreSQL in {place.folder} did not stop, {remaining(place)} still runs",
            then="see in its log what blocks it, and kill those processes only as a last resort",
            logs=logs(place),
        )


def logs(place: Home) -> list[Path]:
    """Return the files that the server may have written its last messages to."""
    return [log for log in (place.startup_log, current_log(place)) if log is not None]


def current_log(place: Home) -> Path | None:
    """Return the file that the running server logs to."""
    with suppress(OSError, IndexError):
        name = (place.pgdata / "current_logfiles").read_text().split()[1]
        return place.logs / Path(name).name
    return None


def remaining(place: Home) -> str:
    """Return the processes that still belong to this home's server, as text."""
    pids = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if place.mark in " ".join(process.cmdline()):
                pids.append(str(process.pid))
    return f"process {', '.join(pids)}" if pids else "a process that cannot be seen from here"


def _clear_leftovers(place: Home) -> None:
    """Remove what a crashed server left; we hold its lock, so none of its processes is alive.

    PostgreSQL itself detects a stale pid file, unless the id now belongs to another program of the same user.
    """
    pid_file = place.pgdata / "postmaster.pid"
    with suppress(OSError, ValueError, IndexError):
        if psutil.pid_exists(int(pid_file.read_text().split()[0])):
            pid_file.unlink()
    (place.pgdata / "current_logfiles").unlink(missing_ok=True)
    for leftover in place.sockets.iterdir():
        leftover.unlink()


def _runs_with(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return _runs(psutil.Process(pid))
    return False


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False

"""A PostgreSQL cluster of a test's own, made of given programs: a standby, a small disk, an older release.

Files, socket and log lie in one folder. It runs no longer than this process lives, and as a user without rights.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from datetime import timedelta
from pathlib import Path

import psycopg

from holdfast.embedded import locks, rights

SUPERUSER = "postgres"
FAST = ("fsync=off", "full_page_writes=off", "shared_buffers=128MB")
START_WAIT = timedelta(seconds=60)


class Cluster:
    """One server. Several may share a folder: each has a port, and its socket is named after it."""

    def __init__(
        self,
        programs: Path,
        folder: Path,
        *,
        port: int = 5432,
        settings: tuple[str, ...] = FAST,
        log: Path | None = None,
    ) -> None:
        self._programs = programs
        self.folder = folder
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._log = log or folder / f"log.{port}"
        self.port = port
        self.data = folder / f"data.{port}"
        self.admin = f"host={folder} port={port} user={SUPERUSER} dbname=postgres"

    def make(self, *options: str) -> None:
        """Make its files anew; the options are those of initdb."""
        self._furnish()
        usual = ["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        self._run("initdb", "-D", str(self.data), *usual, *options)

    def copy(self, primary: Cluster, name: str) -> None:
        """Make its files from a running primary, to follow it under a name."""
        self._furnish()
        source = f"{primary.admin} application_name={name}"
        self._run("pg_basebackup", "-D", str(self.data), "-R", "-c", "fast", "--no-sync", "-d", source)

    def start(self) -> None:
        """Start it unless it runs, and wait until it takes connections; should it end meanwhile, start it again."""
        assert locks.until(self._is_up, within=START_WAIT), self.log()

    def halt(self) -> None:
        """End it at once, as `pg_ctl stop -m immediate` does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()

    def restart(self) -> None:
        """Do as `pg_ctl restart -m immediate`."""
        self.halt()
        self.start()

    def remove(self) -> None:
        """End it, and take its files away."""
        self.halt()
        shutil.rmtree(self.data, ignore_errors=True)

    def promote(self) -> None:
        """Make a primary of a standby, and wait until it takes writes."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute("select pg_promote()")

    def set(self, setting: str, value: str) -> None:
        """Change a setting while it runs."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute(f"alter system set {setting} = '{value}'")
            connection.execute("select pg_reload_conf()")

    def log(self) -> str:
        """Give what it wrote to its log."""
        return self._log.read_text()

    def _furnish(self) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        rights.identity().give(self.folder)

    def _launch(self) -> None:
        options = [option for setting in self._settings for option in ("-c", setting)]
        place = ["-D", str(self.data), "-k", str(self.folder), "-p", str(self.port), "-c", "listen_addresses="]
        with self._log.open("ab") as log:
            command = self._command("postgres", *place, *options)
            self._process = subprocess.Popen(command, cwd="/", stdout=log, stderr=log, process_group=0)

    def _is_up(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            self._launch()
        try:
            psycopg.connect(self.admin).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(self._command(program, *arguments), capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0, done.stderr

    def _command(self, program: str, *arguments: str) -> list[str]:
        """Drop root's rights, and then ask to die with us: a change of user would undo that."""
        *drop, path = rights.command(rights.identity(), self._programs / program)
        return [*drop, "setpriv", "--pdeathsig", "QUIT", "--", path, *arguments]

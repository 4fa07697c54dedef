"""The embedded PostgreSQL of a home, as a server that a test may kill."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil

from holdfast import embedded
from scenarios.crew import until


class HomeServer:
    """The PostgreSQL of a home, to be killed and started again."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.admin = embedded.admin_dsn(home)

    def halt(self) -> None:
        """End it at once, as `pg_ctl stop -m immediate` does."""
        postmaster = psutil.Process(embedded.status(self._home).pid)
        postmaster.send_signal(signal.SIGQUIT)
        until(lambda: not embedded.status(self._home).running, "the server ended")

    def start(self) -> None:
        """Start it unless it runs, and wait until it takes connections."""
        embedded.ensure(self._home)

    def restart(self) -> None:
        """Do as `pg_ctl restart -m immediate`."""
        self.halt()
        self.start()

    def log(self) -> str:
        """Give what it wrote to its log."""
        return embedded.status(self._home).log_file.read_text()

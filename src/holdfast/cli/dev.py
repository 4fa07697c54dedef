"""`holdfast dev`: database, migrations and a worker in one command; the worker restarts when the code changes."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from holdfast import embedded, log
from holdfast.cli.connection import load_settings, opened_database
from holdfast.cli.options import output_options
from holdfast.cli.render import AsJson, data_json, say
from holdfast.cli.worker import App, Concurrency, Supervised, options_of
from holdfast.errors import AppNotFound, BadInput
from holdfast.kernel import migrate
from holdfast.worker.exit_codes import DRAINED, STOPPED_NOW, STOPS

Queues = Annotated[list[str], typer.Option("--queue", "-q", help="A queue to serve; by default all queues of the app.")]

LOOK_EACH = 1.0  # seconds
Seen = dict[Path, int]


@output_options
def dev(
    *,
    app: App,
    queue: Queues = [],  # noqa: B006 - typer copies it
    concurrency: Concurrency = 10,
    supervised: Supervised = False,
    as_json: AsJson = False,
) -> None:
    """Develop an app: database, migrations and a reloading worker in one command.

    The worker serves all queues of the app. It restarts, after an orderly stop, when a .py file of the app's package
    changes. Ctrl-C ends everything; a second Ctrl-C does not wait for handlers.

    Examples:

        holdfast dev --app shop.tasks:hf
    """
    if supervised:
        raise typer.Exit(_work(app, queue, concurrency))
    folder, pattern = watched(app)
    with opened_database(load_settings()) as dsn:
        migrate.run(dsn, progress=say)
        arguments = ["--app", app, "--concurrency", str(concurrency), *(f"--queue={each}" for each in queue)]
        form = {"HOLDFAST_LOG_FORMAT": "json"} if as_json else {}
        worker = Renewed([sys.executable, "-m", "holdfast", "dev", *arguments, "--supervised"], dsn, form)
        for number in STOPS:
            signal.signal(number, worker.stop)
        code = worker.run(folder, pattern)
    say("stopped")
    if as_json:
        data_json({"exit_code": code})
    raise typer.Exit(code)


def watched(app: str) -> tuple[Path, str]:
    """Find the folder to watch without importing the app: that of its package or module."""
    root = app.partition(":")[0].partition(".")[0]
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    spec = importlib.util.find_spec(root) if root else None
    if spec is None:
        raise AppNotFound(
            f"there is no module {root or app!r} here",
            where="--app",
            next="write --app module:name, as in --app shop.tasks:hf",
        )
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))), "**/*.py"
    return Path(spec.origin or here).parent, "*.py"


def seen(folder: Path, pattern: str) -> Seen:
    """Return the files, with when each was last written."""
    times: Seen = {}
    for file in folder.glob(pattern):
        with suppress(OSError):  # deleted meanwhile
            times[file] = file.stat().st_mtime_ns
    return times


class Renewed:
    """A worker process that is replaced when the code changes, even if it has ended."""

    def __init__(self, command: list[str], dsn: str, settings: dict[str, str]) -> None:
        self._command = command
        self._environment = {"HOLDFAST_LOG_FORMAT": "console", **os.environ, **settings, "HOLDFAST_DSN": dsn}
        self._environment.pop("HOLDFAST_DSN_FILE", None)  # already read, and only one of the two may be set
        self._process: subprocess.Popen[bytes] | None = None
        self._signals = 0

    def run(self, folder: Path, pattern: str) -> int:
        """Run until stopped, and return the exit code."""
        say(f"watching {folder}/{pattern}")
        times = seen(folder, pattern)
        while not self._signals:
            # It gets no Ctrl-C from the terminal, only ours: two would mean not to wait for handlers.
            with subprocess.Popen(
                self._command, stdin=subprocess.PIPE, env=self._environment, start_new_session=True
            ) as self._process:
                now = self._until_changed(self._process, times, lambda: seen(folder, pattern))
                if not self._signals:
                    names = sorted({path.name for path, _ in times.items() ^ now.items()})
                    say(f"{', '.join(names)} changed: the worker restarts")
                    self._process.send_signal(signal.SIGTERM)
            times = now
        return STOPPED_NOW if self._signals > 1 else DRAINED

    def stop(self, _number: int, _frame: object) -> None:
        """Stop the worker; a second call makes it stop without waiting for handlers."""
        self._signals += 1
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def _until_changed(self, process: subprocess.Popen[bytes], times: Seen, look: Callable[[], Seen]) -> Seen:
        is_told = False
        while not self._signals and (now := look()) == times:
            if process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_EACH)
                continue
            if not is_told:
                is_told = True
                say(f"the worker ended with exit code {process.returncode}; it restarts when the code changes")
            time.sleep(LOOK_EACH / 5)
        return times if self._signals else now


def _work(app: str, queues: list[str], concurrency: int) -> int:
    config = load_settings()
    log.configure(config.log_level, config.log_format)
    from holdfast.cli.app_loader import load_app
    from holdfast.worker.process import run_worker

    hf = load_app(app)
    served = queues or sorted({handler.queue for handler in hf._engine.registry})
    if not served:
        raise BadInput(
            f"{app} has no tasks",
            where=app,
            next="decorate a function with @hf.task, and check that its module is imported",
        )
    options = options_of(config, served, [], concurrency)
    return run_worker(
        embedded.address(config), hf._engine.registry, options, hooks=hf._engine.hooks, is_supervised=True
    )

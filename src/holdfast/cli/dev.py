"""`holdfast dev`: database, migrations and a worker by one command; the worker is renewed when the code changes."""

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

Queues = Annotated[list[str], typer.Option("--queue", "-q", help="A queue to serve; all of the app's by default.")]

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
    """Work on an app: database, migrations and a worker by one command.

    The worker serves all queues of the app and is started anew, after an orderly stop, when a .py file of the app's
    package changes. Ctrl-C ends all of it; a second one does not wait for handlers.

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
    """Find what to watch, without importing it: the folder of the app's package, or that of its module."""
    root = app.partition(":")[0].partition(".")[0]
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    found = importlib.util.find_spec(root) if root else None
    if found is None:
        raise AppNotFound(
            f"there is no module {root or app!r} here",
            where="--app",
            next="write --app module:name, as in --app shop.tasks:hf",
        )
    if found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations))), "**/*.py"
    return Path(found.origin or here).parent, "*.py"


def seen(folder: Path, pattern: str) -> Seen:
    """Tell which files there are, and when each was last written."""
    times: Seen = {}
    for file in folder.glob(pattern):
        with suppress(OSError):  # gone since
            times[file] = file.stat().st_mtime_ns
    return times


class Renewed:
    """A worker process that is replaced when the code has changed; one that has ended waits for that too."""

    def __init__(self, command: list[str], dsn: str, settings: dict[str, str]) -> None:
        self._command = command
        self._environment = {"HOLDFAST_LOG_FORMAT": "console", **os.environ, **settings, "HOLDFAST_DSN": dsn}
        self._environment.pop("HOLDFAST_DSN_FILE", None)  # it was read, and one of the two is enough
        self._process: subprocess.Popen[bytes] | None = None
        self._signals = 0

    def run(self, folder: Path, pattern: str) -> int:
        """Go on until told to stop, and give the exit code."""
        say(f"watching {folder}/{pattern}")
        times = seen(folder, pattern)
        while not self._signals:
            # It gets no Ctrl-C of the terminal's, only ours: two for one would mean to hurry.
            with subprocess.Popen(
                self._command, stdin=subprocess.PIPE, env=self._environment, start_new_session=True
            ) as self._process:
                now = self._until_changed(self._process, times, lambda: seen(folder, pattern))
                if not self._signals:
                    names = sorted({path.name for path, _ in times.items() ^ now.items()})
                    say(f"{', '.join(names)} changed: the worker is started anew")
                    self._process.send_signal(signal.SIGTERM)
            times = now
        return STOPPED_NOW if self._signals > 1 else DRAINED

    def stop(self, _number: int, _frame: object) -> None:
        """Have it end; told twice, the worker is too, and waits for no handler."""
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
                say(f"the worker ended with exit code {process.returncode}; it is started anew when the code changes")
            time.sleep(LOOK_EACH / 5)
        return times if self._signals else now


def _work(app: str, queues: list[str], concurrency: int) -> int:
    config = load_settings()
    log.configure(config.log_level, config.log_format)
    from holdfast.cli.app_loader import load_app
    from holdfast.worker.process import run_worker

    found = load_app(app)
    served = queues or sorted({handler.queue for handler in found._engine.registry})
    if not served:
        raise BadInput(
            f"{app} has no tasks",
            where=app,
            next="decorate a function with @hf.task, and see that its module is imported",
        )
    options = options_of(config, served, [], concurrency)
    return run_worker(
        embedded.address(config), found._engine.registry, options, hooks=found._engine.hooks, is_supervised=True
    )

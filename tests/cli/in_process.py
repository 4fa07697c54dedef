"""Runs a command inside the test's process: with its arguments, settings, streams and exit code, without the start."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager

from holdfast.cli import main, render

# Commands that open a connection, read or act, and end. Others start processes, take signals or import apps.
GROUPS = frozenset(
    {"runs", "dlq", "queues", "workers", "flow", "rules", "ops", "config", "start", "limits", "schedules", "retention"}
)
SERVING = frozenset({"work", "webhook"})


def is_fit(arguments: Sequence[str]) -> bool:
    """Whether a command needs no process of its own."""
    is_serving = arguments[:1] == ("ops",) and not SERVING.isdisjoint(arguments[:2])
    return bool(arguments) and arguments[0] in GROUPS and "--app" not in arguments and not is_serving


def run(
    arguments: Sequence[str], environment: Mapping[str, str], stdin: str | None
) -> subprocess.CompletedProcess[str]:
    """Run the command line, and give what a process of its own would have given."""
    given = io.TextIOWrapper(io.BytesIO((stdin or "").encode()), "utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with _instead(["holdfast", *arguments], environment, (given, out, err)), warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except Exception:  # noqa: BLE001 - as the interpreter would
            traceback.print_exc()
            code = 1
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(list(arguments), code, *texts)


@contextmanager
def _instead(arguments: list[str], environment: Mapping[str, str], streams: tuple[io.TextIOWrapper, ...]):
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr, dict(os.environ)
    sys.argv, (sys.stdin, sys.stdout, sys.stderr) = arguments, streams
    os.environ.clear()
    os.environ.update(environment)
    try:
        yield
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr, environ = before
        os.environ.clear()
        os.environ.update(environ)
        render._quiet.clear()

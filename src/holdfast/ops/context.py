"""The context of an ops handler: programs, artifacts and metadata of its run."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast import config, masking
from holdfast.durations import Duration, duration
from holdfast.errors import BadInput, ProgramFailed
from holdfast.failpoints import failpoint
from holdfast.handlers.context import Ctx
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.kernel.finite import json_text
from holdfast.models import ClaimedStep
from holdfast.ops import calls as ops
from holdfast.ops.allowance import Allowance
from holdfast.ops.output import storable
from holdfast.ops.recorder import Surroundings
from holdfast.ops.run import OpsRun
from holdfast.ops.sender import Entry
from holdfast.ops.shell import Command, Shell, ShellResult

if TYPE_CHECKING:
    from holdfast.connections.handler_tx import HandlerExecutor

GRACE = timedelta(seconds=10)
LOOK_EACH = 0.1  # seconds: an interruption arrives between two waits
LAST_WAIT = 5.0  # seconds beyond the grace period for a program that is being ended
NOT_FOR_PROGRAMS = frozenset({"HOLDFAST_FAILPOINT"})
LONGEST_SUMMARY = 64 * 1024
LARGEST_OUTPUTS = 256 * 1024  # characters of metadata, as JSON


class OpsCtx(Ctx):
    """The attempt that an ops handler runs: what `Ctx` has, and the programs and artifacts of its run."""

    __slots__ = ("_allowance", "_last", "_outputs", "_summary", "execution", "run")

    def __init__(self, step: ClaimedStep, executor: HandlerExecutor) -> None:
        super().__init__(step, executor)
        self.run: OpsRun | None = None  # set when the handler begins
        self.execution = 1  # the number of this execution, from 1: a failed one is repeated in place
        self._allowance = Allowance()
        self._last: ShellResult | None = None
        self._outputs: dict[str, Any] = {}
        self._summary = ""

    def shell(
        self,
        *argv: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        timeout: Duration | None = None,
        grace: Duration = GRACE,
        step: str | None = None,
        check: bool = True,
        keep_log: str | None = None,
    ) -> ShellResult:
        """Run a program, with its output as events of the run, and return how it ended.

        `argv` is a list of arguments, not a line of shell: see `bash`. `env` is added to the worker's environment. An
        exit code other than 0 raises ProgramFailed, unless `check` is False. After `timeout`, and when the run has to
        stop, the program's process group gets SIGTERM, and after `grace` SIGKILL. `step` names it in events and
        metadata. `keep_log` is the name of a file for all of its output, which becomes an artifact.
        """
        command = self._command(argv, env, cwd, timeout, grace, step=step, keep_log=keep_log)
        shell = Shell(command, self._around())
        shell.start()
        try:
            while not shell.wait(LOOK_EACH):
                pass
        except BaseException:  # the handler is interrupted, or its process ends
            shell.stop("its handler was interrupted")
            shell.wait(command.grace + LAST_WAIT)
            raise
        return self._ended(shell, command, check=check)

    async def ashell(
        self,
        *argv: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        timeout: Duration | None = None,
        grace: Duration = GRACE,
        step: str | None = None,
        check: bool = True,
        keep_log: str | None = None,
    ) -> ShellResult:
        """Run a program as `shell` does, without blocking the loop."""
        command = self._command(argv, env, cwd, timeout, grace, step=step, keep_log=keep_log)
        shell = Shell(command, self._around())
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        shell.start(lambda: _set_soon(loop, done))
        try:
            await done.wait()
        except BaseException:
            shell.stop("its handler was interrupted")
            await asyncio.to_thread(shell.wait, command.grace + LAST_WAIT)
            raise
        return await asyncio.to_thread(self._ended, shell, command, check=check)

    def bash(self, line: str, **options: Any) -> ShellResult:
        """Run a line of bash, which ends at the first command that fails, with the options of `shell`."""
        return self.shell("bash", "-euo", "pipefail", "-c", line, **{"step": "bash", **options})

    async def abash(self, line: str, **options: Any) -> ShellResult:
        """Run a line of bash as `bash` does, without blocking the loop."""
        return await self.ashell("bash", "-euo", "pipefail", "-c", line, **{"step": "bash", **options})

    def artifact(
        self,
        type: str,  # noqa: A002 - the word is the same in SQL
        place: str | Path,
        *,
        digest: str | None = None,
        size: int | None = None,
        **metadata: Any,
    ) -> str:
        """Register what the run produced, by its URL or as a local file, and return the artifact's id.

        Of a file the size and the SHA-256 are recorded. The same type and place again returns the same id.
        """
        if isinstance(place, Path):
            size, digest = place.stat().st_size if size is None else size, digest or _sha256(place)
            place = place.absolute().as_uri()
        failpoint("before_artifact")
        masked = masking.known
        call = ops.add_artifact(
            self._own_run().run_id,
            masked.text(type),
            masked.text(place),
            digest=None if digest is None else masked.text(digest),
            size=size,
            metadata=masked.value(metadata),
            worker=self.worker,
        )
        artifact_id: str = self._make(call)[0]
        failpoint("after_artifact")
        return artifact_id

    def output(self, **values: Any) -> None:
        """Add to the metadata that the run gets when it ends, also if it fails."""
        try:
            text = json.dumps({**self._outputs, **values}, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadInput(f"metadata must be JSON: {error}", where="values", next="convert it to text") from None
        if len(text) > LARGEST_OUTPUTS or "\\u0000" in text:
            raise BadInput(
                f"metadata must have at most {LARGEST_OUTPUTS:,} characters and no NUL, got {len(text):,}",
                where="values",
                next="keep it in a file, and register that with ctx.artifact",
            )
        self._outputs |= values

    def metadata(self) -> dict[str, Any]:
        """Return what the run gets as metadata when it ends, besides the handler's result."""
        last = {} if self._last is None else {"exit_code": self._last.exit_code}
        return {**last, **self._outputs, **({"summary": self._summary} if self._summary else {})}

    def failure_metadata(self, error: BaseException) -> dict[str, Any]:
        """Return what the run gets as metadata when an execution failed."""
        failed = error if isinstance(error, ProgramFailed) else None
        if failed is None:
            return self.metadata()
        parts = {"exit_code": failed.program_exit, "step": failed.step, "stderr": failed.stderr}
        return {**self.metadata(), **{name: value for name, value in parts.items() if value is not None}}

    def begin(self, run: OpsRun) -> None:
        """Start the run, or raise LeaseLost if it expired in the queue; called by the worker."""
        self.run = run
        if run.expires_at is not None and self.ask(ops.expire_claimed(self.step_id, self.lease_id))[0]:
            self.stop_now()
        self.append(Entry(f"Started by {self.worker}", payload={"worker": self.worker}))

    def append_all(self, entries: Sequence[Entry]) -> None:
        """Store events in one transaction, also while the run is being stopped; the lease fences them."""
        masked = masking.known
        self._executor.make(
            ops.append_output(
                self.step_id,
                self.lease_id,
                levels=[entry.level for entry in entries],
                messages=[masked.text(storable(entry.message)) for entry in entries],
                payloads=[json_text(masked.value(entry.payload)) for entry in entries],
                keys=[entry.key for entry in entries],
            )
        )

    def append(self, entry: Entry) -> None:
        """Store an event; the first one moves the run from claimed to running."""
        self._executor.make(
            calls.note(
                self.step_id,
                self.lease_id,
                entry.level,
                masking.known.shown(storable(entry.message)),
                payload=masking.known.shown(entry.payload),
                key=entry.key,
            )
        )

    def ask(self, call: Call[Any]) -> list[Any]:
        """Make a call that the lease fences; raise LeaseLost if the run has to stop."""
        return self._make(call)

    def stop_now(self) -> NoReturn:
        """Raise LeaseLost, because the run has to stop."""
        self._lost()
        raise AssertionError("not reached")

    def _ended(self, shell: Shell, command: Command, *, check: bool) -> ShellResult:
        result = self._last = shell.result()
        try:
            self.output(**result.outputs)
        except BadInput as error:
            self.append(Entry(f"HOLDFAST_OUTPUT is left out: {error.what}", "warn", {"step": result.step}))
        self._summary = (self._summary + result.summary)[:LONGEST_SUMMARY]
        if result.stop_reason is not None or self.cancelled:
            self.tell_to_stop(result.stop_reason or "its run has to stop")
            self.stop_now()
        if command.log_file is not None:
            self.artifact("logs", command.log_file, step=result.step)
        return result.check() if check else result

    def _command(
        self,
        argv: tuple[str | Path, ...],
        env: Mapping[str, str] | None,
        cwd: str | Path | None,
        timeout: Duration | None,
        grace: Duration,
        *,
        step: str | None,
        keep_log: str | None,
    ) -> Command:
        if self.cancelled:
            self.stop_now()
        words = tuple(str(word) if isinstance(word, Path) else word for word in argv)
        _check("argv", words)
        _check("env", [*(env or {}), *(env or {}).values()])
        if not words:
            raise BadInput("shell needs a program", where="argv", next='use ctx.shell("make", "image")')
        if cwd is not None and not Path(cwd).is_dir():
            raise BadInput(f"cwd must be a folder, got {cwd}", where="cwd", next="create it first")
        inherited = {name: value for name, value in os.environ.items() if name not in NOT_FOR_PROGRAMS}
        return Command(
            words,
            step=step or Path(words[0]).name,
            env={**inherited, **self._own_run().environment(), **(env or {})},
            cwd=None if cwd is None else str(cwd),
            timeout=None if timeout is None else duration(timeout, "timeout").total_seconds(),
            grace=duration(grace, "grace").total_seconds(),
            log_file=None if keep_log is None else self._log_file(keep_log),
        )

    def _log_file(self, name: str) -> Path:
        if Path(name).name != name or name in {"", ".", ".."}:
            raise BadInput(f"keep_log must be the name of a file, got {name!r}", where="keep_log", next="use build.log")
        settings = config.load()
        folder = (settings.artifacts or settings.home / "artifacts") / self._own_run().run_id
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{self.execution}-{name}"

    def _around(self) -> Surroundings:
        return Surroundings(
            self.append_all, lambda: self.stop_reason, masking.known.text, masking.known.stream, self._allowance
        )

    def _own_run(self) -> OpsRun:
        if self.run is None:
            raise AssertionError("the handler has not begun")
        return self.run


def _check(what: str, words: Any) -> None:
    for word in words:
        if not isinstance(word, str) or "\0" in word:
            raise BadInput(
                f"{what} must be text without NUL characters, got {word!r}", where=what, next="convert it with str()"
            )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _set_soon(loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
    try:
        loop.call_soon_threadsafe(done.set)
    except RuntimeError:  # the loop is closed, because the worker has stopped
        return

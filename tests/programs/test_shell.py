"""Programs of a run: their output becomes events as it appears, and nothing of them outlives their run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from holdfast.errors import LeaseLost, ProgramFailed, Unreachable
from holdfast.ops.watcher import KILL_WAIT, ORPHANED_GRACE
from programs.shells import FakeRun, Gate, Outage, ended, is_alive, until_gone, until_shown
from worker.running import until

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(99)"
)
LEFT_BEHIND = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL).pid)"
DETACHED = (
    "import subprocess, sys; c = subprocess.Popen(['sleep', '99'], start_new_session=True); "
    "print(c.pid, flush=True); exec(sys.argv[1])"
)


def test_output_becomes_events_as_it_appears(tmp_path: Path) -> None:
    gate, run = Gate(tmp_path), FakeRun()
    shell = run.begin(sys.executable, "-uc", f"print('first')\n{gate.WAIT}print('second')", str(gate.path))

    until_shown(run, "first")
    assert "second" not in run.output
    gate.open()
    result = ended(shell)

    assert (result.exit_code, run.output, result.stdout) == (0, "first\nsecond\n", "first\nsecond\n")
    assert [entry.payload["stream"] for entry in run.entries if "stream" in entry.payload] == ["stdout", "stdout"]


def test_its_command_and_its_exit_code_are_events_too() -> None:
    run = FakeRun()
    result = run.python("import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)")

    first, last = run.remarks
    assert first.message.startswith("$ ")
    assert first.payload == {"step": "python"}
    assert (last.level, last.payload["exit_code"], result.stderr) == ("error", 3, "two\n")
    with pytest.raises(ProgramFailed) as failure:
        result.check()
    assert (failure.value.program_exit, failure.value.step, failure.value.stderr) == (3, "python", "two\n")


@pytest.mark.parametrize(("program", "code"), [("/nowhere/at-all", 127), (__file__, 126)], ids=["missing", "no right"])
def test_a_program_that_cannot_be_started_fails_with_the_code_of_a_shell(program: str, code: int) -> None:
    run = FakeRun()
    result = run.run(program)

    assert (result.exit_code, run.remarks[-1].level) == (code, "error")


def test_a_program_reads_nothing_and_leads_its_own_session() -> None:
    code = "import os, sys; print(repr(sys.stdin.read()), os.getpid() == os.getsid(0) == os.getpgid(0))"

    assert FakeRun().python(code).stdout == "'' True\n"


def test_codes_carriage_returns_and_binary_output_are_stored_as_text() -> None:
    run = FakeRun()
    run.python("import os; os.write(1, b'\\x1b[31mred\\x1b[0m\\n10%\\r50%\\rdone\\r\\n\\x00\\xff\\xfe end')")

    assert run.output == "red\ndone\n\ufffd\ufffd end\n"


def test_random_bytes_are_stored() -> None:
    run = FakeRun()
    result = run.run("head", "-c", "3000000", "/dev/urandom")

    assert result.exit_code == 0
    assert "\x00" not in run.output
    run.output.encode()  # no lone surrogate


def test_a_line_of_50_megabytes_is_cut_and_marked() -> None:
    run = FakeRun()
    run.run("bash", "-c", "head -c 52428800 /dev/zero | tr '\\0' x; echo; echo next")

    long, after = run.output.splitlines()
    assert long == f"{'x' * 16384} … [cut: {52428800 - 16384:,} more characters]"
    assert after == "next"


def test_200_megabytes_are_kept_as_head_and_tail_with_flat_memory() -> None:
    run = FakeRun()
    before = psutil.Process().memory_info().rss
    result = run.run(
        "bash", "-c", "yes 'a line of the build that is about forty bytes long' | head -n 4000000; echo end"
    )
    grown = psutil.Process().memory_info().rss - before

    lines = run.output.splitlines()
    dropped = next(entry.payload for entry in run.remarks if "dropped_lines" in entry.payload)
    assert result.exit_code == 0
    assert 8 * 2**20 < len(run.output) <= 10 * 2**20
    assert len(lines) + dropped["dropped_lines"] == 4_000_001
    assert lines[-1] == "end"
    assert all(len(entry.message) <= 65536 for entry in run.entries)
    assert grown < 20 * 2**20 + len(run.output), "this process keeps the events; a worker does not"


def test_all_of_the_output_may_go_to_a_file(tmp_path: Path) -> None:
    run = FakeRun("hunter2hunter2")
    log_file = tmp_path / "all.log"
    run.run("bash", "-c", "seq 2000000; echo hunter2hunter2", log_file=log_file)

    assert log_file.read_text().endswith("2000000\n***\n")
    assert log_file.stat().st_size == 14888896 + 4


def test_a_secret_is_masked_wherever_reads_split_it() -> None:
    secret = "hunter2-hunter2"
    run = FakeRun(secret)
    code = "import os, sys, time\nfor n in range(16):\n os.write(1, b'a' + sys.argv[1][:n].encode()); time.sleep(.02); "
    result = run.python(f"{code}os.write(1, sys.argv[1][n:].encode() + b'z\\n')", secret)

    assert run.output == "a***z\n" * 16
    assert secret not in str(run.entries) + str(result)


def test_a_stopped_run_ends_its_program_and_its_children() -> None:
    run = FakeRun()
    shell = run.begin("bash", "-c", "sleep 99 & echo $! $$; wait")
    until(lambda: run.output, "the process ids")
    run.stop_reason = "it was cancelled"

    result = ended(shell)

    assert (result.stop_reason, result.exit_code) == ("it was cancelled", 128 + signal.SIGTERM)
    until_gone(*map(int, run.output.split()))


def test_a_program_that_ignores_sigterm_is_killed_after_the_grace_period() -> None:
    run = FakeRun()
    shell = run.begin(sys.executable, "-c", STUBBORN, grace=0.3)
    until_shown(run, "ready")
    run.stop_reason = "it was cancelled"

    assert ended(shell).exit_code == 128 + signal.SIGKILL


def test_a_program_has_its_own_timeout() -> None:
    run = FakeRun()
    result = run.run("sleep", "99", timeout=0.2)

    assert result.is_timed_out
    assert result.exit_code == 128 + signal.SIGTERM
    with pytest.raises(ProgramFailed) as failure:
        result.check()
    assert failure.value.step == "sleep"


def test_children_that_a_program_leaves_behind_are_ended_with_its_group() -> None:
    run = FakeRun()
    polite = run.python(LEFT_BEHIND, "sleep", "99")
    stubborn = run.python(LEFT_BEHIND, sys.executable, "-c", STUBBORN)

    assert polite.exit_code == stubborn.exit_code == 0
    assert not any(is_alive(int(pid)) for pid in run.output.split())
    assert all("left processes behind" in entry.message for entry in run.remarks if "exit_code" in entry.payload)


def test_a_process_that_left_the_session_survives_success_but_not_a_stop() -> None:
    kept, stopped = FakeRun(), FakeRun()
    kept.python(DETACHED, "pass")
    daemon = int(kept.output)
    assert is_alive(daemon)
    os.kill(daemon, signal.SIGKILL)

    shell = stopped.begin(sys.executable, "-c", DETACHED, "__import__('time').sleep(99)")
    until(lambda: stopped.output, "the process id")
    stopped.stop_reason = "it was cancelled"
    ended(shell)

    until_gone(int(stopped.output))


def test_an_outage_of_the_database_loses_no_output_and_a_lost_run_stops_its_program() -> None:
    outage = FakeRun(append=Outage(Unreachable("no server"), times=3))
    assert outage.run("seq", "3").exit_code == 0
    assert outage.output == "1\n2\n3\n"

    lost = FakeRun(append=Outage(LeaseLost("it is not ours"), times=99))
    assert lost.run("sleep", "99").stop_reason == "it is not ours"


WORKER = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from programs.shells import FakeRun

def append(entry):
    print(entry.message, flush=True)
    if 'fork now' in entry.message and 'stream' in entry.payload and os.fork() == 0:
        time.sleep(20)
        os._exit(0)

FakeRun(append=append).run(*sys.argv[2:], grace=60)
"""


@contextmanager
def worker_process(line: str) -> Iterator[tuple[subprocess.Popen[str], Iterator[str]]]:
    """Run a process that runs a program as a worker does, and yield it with the messages of its events."""
    command = [sys.executable, "-W", "ignore", "-c", WORKER, str(Path(__file__).parents[1]), "bash", "-c", line]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            yield process, iter(process.stdout)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("stubborn", [False, True], ids=["polite", "ignores SIGTERM"])
def test_when_a_worker_is_killed_its_program_dies(stubborn: bool) -> None:
    """R-: the watcher notices the end of its pipe; a run that was cancelled as stale must not go on deploying."""
    assert ORPHANED_GRACE + KILL_WAIT < 2
    trap = "trap '' TERM; " if stubborn else ""
    line = f"{trap}setsid sleep 99 & sleep 98 & echo pids $! $$; wait; wait"
    with worker_process(line) as (worker, messages):
        pids = next(message for message in messages if message.startswith("pids")).split()[1:]
        tree = psutil.Process(worker.pid).children(recursive=True)
        worker.kill()

        until_gone(*map(int, pids), *(process.pid for process in tree))
        assert len(tree) == 4


def test_when_the_watcher_is_killed_its_program_dies_and_the_shell_ends() -> None:
    run = FakeRun()
    shell = run.begin("bash", "-c", "echo $$; sleep 99")
    until(lambda: run.output, "the process id")
    program = psutil.Process(int(run.output))
    watcher = program.parent()
    assert watcher is not None
    watcher.kill()

    assert ended(shell).exit_code == 128 + signal.SIGKILL
    until_gone(program.pid)


def test_a_fork_of_the_worker_does_not_keep_a_program_alive() -> None:
    with worker_process("echo pid $$; echo fork now; sleep 0.5; echo forked; sleep 99") as (worker, messages):
        pid = next(int(line.split()[1]) for line in messages if line.startswith("pid"))
        next(line for line in messages if line.startswith("forked"))
        worker.kill()

        until_gone(pid)


def test_a_program_writes_metadata_and_a_summary_to_files() -> None:
    run = FakeRun("hunter2hunter2")
    lines = "url=https://a.example\\nnotes<<END\\none\\ntwo\\nEND\\nodd line\\nkey=hunter2hunter2\\n"
    result = run.run("bash", "-c", f"printf '{lines}' >> $HOLDFAST_OUTPUT; echo '# Done' > $HOLDFAST_SUMMARY")

    assert result.outputs == {"url": "https://a.example", "notes": "one\ntwo", "key": "***"}
    assert result.summary == "# Done\n"
    assert any(entry.level == "warn" and "odd line" in entry.message for entry in run.remarks)


@pytest.mark.parametrize(
    "replace",
    ["rm $FILE", "rm $FILE; mkfifo $FILE", "head -c 999999 /dev/zero > $FILE"],
    ids=["gone", "a pipe", "large"],
)
def test_a_program_that_spoils_its_files_still_ends(replace: str) -> None:
    assert FakeRun().run("bash", "-c", f"FILE=$HOLDFAST_OUTPUT; {replace}").exit_code == 0

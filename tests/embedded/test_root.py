"""Started by root: the server is an unprivileged user's, and nothing outside the home changes for its sake."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import psycopg
import pytest

from embedded.others import copy_of_the_wheel, ensuring, output, path_to
from holdfast import embedded
from holdfast.embedded.rights import SERVER_GROUP
from holdfast.errors import EmbeddedFailed
from servers import owned_server, reaped

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to drop")

DAC_READ_SEARCH = 1 << 2
CONTAINER = [
    "chown",
    "dac_override",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "net_raw",
    "sys_chroot",
]
AS_IN_A_CONTAINER = ("setpriv", "--bounding-set=-all," + ",".join(f"+{name}" for name in CONTAINER), "--")


@pytest.fixture
def closed(tmp_path):
    """A folder that only root can enter, as root's own home is."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    return folder


def rights(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines)


def ask(dsn, statement):
    with psycopg.connect(dsn) as connection:
        return connection.execute(statement).fetchone()


def test_the_server_runs_as_nobody_without_any_right_beyond(closed):
    with owned_server(closed / "home"):
        found = rights(embedded.status(closed / "home").pid)

    assert set(found["Uid"].split()) == {str(pwd.getpwnam("nobody").pw_uid)}
    assert set(found["Gid"].split()) == {str(SERVER_GROUP)}
    assert found["Groups"].split() == []
    assert found["NoNewPrivs"] == "1"
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(found[kind], 16) & ~DAC_READ_SEARCH == 0


def test_no_owner_and_no_mode_outside_the_home_changes(closed):
    home = closed / "home"
    watched = [*home.parents, *embedded.binary("postgres").parents, embedded.binary("postgres")]
    before = {path: (path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in watched}

    with owned_server(home) as dsn:
        assert ask(dsn, "select 1") == (1,)

    assert {path: (path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in watched} == before


def test_programs_that_nobody_can_reach_are_run_with_the_right_to_read_and_no_other(closed):
    home = closed / "home"
    copy = copy_of_the_wheel(closed / "copy")
    with reaped(home) as alive:
        dsn = output(ensuring(home, env=path_to(copy), pass_fds=(alive,)))
        pid = embedded.status(home).pid

        assert psutil.Process(pid).cmdline()[0].startswith(str(copy))
        assert int(rights(pid)["CapEff"], 16) == DAC_READ_SEARCH
        assert int(rights(pid)["CapBnd"], 16) == DAC_READ_SEARCH
        assert ask(dsn, "select extname::text from pg_extension") == ("plpgsql",)


def test_a_closed_home_works_for_the_root_of_a_container_too(closed):
    home = closed / "home"
    with reaped(home) as alive:
        starter = ensuring(home, prefix=AS_IN_A_CONTAINER, pass_fds=(alive,))
        out, err = starter.communicate()
        if starter.returncode != 0 and "where every user can read it" in err:
            pytest.skip("the wheel itself lies where nobody can read it")

        assert starter.returncode == 0, err
        assert ask(out.strip(), "select 1") == (1,)
        assert int(rights(embedded.status(home).pid)["CapEff"], 16) == 0


def test_programs_out_of_reach_are_an_error_with_a_way_on_where_there_is_no_such_right(closed):
    home = closed / "home"
    copy = copy_of_the_wheel(closed / "copy")
    with reaped(home):
        starter = ensuring(home, env=path_to(copy), prefix=AS_IN_A_CONTAINER)
        _, err = starter.communicate()

    assert starter.returncode == 1
    assert "cannot reach" in err
    assert "; install the package where every user can read it" in err


@pytest.fixture
def public():
    """A folder that everybody can enter; pytest's own are closed."""
    with TemporaryDirectory(prefix="holdfast-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_other_programs_of_nobody_can_neither_enter_nor_trace(public):
    home = public / "home"
    nobody = ("setpriv", "--reuid=nobody", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--")
    with owned_server(home):
        pid = embedded.status(home).pid

        for guarded in (home, home / "run", home / "pgdata", home / "log", f"/proc/{pid}/cwd/", f"/proc/{pid}/root/"):
            look = subprocess.run([*nobody, "ls", str(guarded)], capture_output=True, text=True, check=False)
            assert look.returncode != 0, guarded
            assert "Permission denied" in look.stderr


def test_an_empty_folder_that_is_open_is_closed_and_one_with_other_things_is_refused(public):
    home, shared = public / "home", public / "shared"
    for folder in (home, shared):
        folder.mkdir()
        folder.chmod(0o755)
    (shared / "theirs").touch()

    with owned_server(home):
        assert stat.S_IMODE(home.stat().st_mode) == 0o710
    with pytest.raises(EmbeddedFailed, match="other files"):
        embedded.ensure(shared)

    assert stat.S_IMODE(shared.stat().st_mode) == 0o755

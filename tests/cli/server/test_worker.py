"""`holdfast worker`: the app it loads, what it is told by settings, and what it refuses with a way on."""

from __future__ import annotations

import socket
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast import config
from holdfast.cli.app_loader import load_app
from holdfast.cli.worker import _commands, options_of
from holdfast.errors import AppNotFound, BadInput, BadSetting

GOOD = """
from holdfast import Holdfast
hf = Holdfast()
@hf.task
def work(number: int) -> int:
    return number
"""

REFUSED = """
from holdfast.kernel import calls
hf._engine.registry.add_definition(lambda: calls.define_kind("a kind", policy="no policy of ours"))
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *__import__("sys").path])
    for name, text in {
        "shop_good": GOOD,
        "shop_two": GOOD + "other = Holdfast()\n",
        "shop_alias": GOOD + "same = hf\n",
        "shop_none": "hf = 3\n",
        "shop_empty": "from holdfast import Holdfast\nhf = Holdfast()\n",
        "shop_broken": "import os\nos.nothing_of_that_name\n",
        "shop_lacks": "import a_module_that_is_not_there\n",
        "shop_syntax": "def (\n",
        "shop_exits": "raise SystemExit(3)\n",
        "shop_refused": GOOD + REFUSED,
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


@pytest.mark.parametrize("named", ["shop_good", "shop_good:hf", "shop_alias", "shop_two:other"])
def test_an_app_is_found(shop: Path, named: str) -> None:
    """W-01: the only one of a module needs no name."""
    module, _, name = named.partition(":")

    assert load_app(named) is getattr(sys.modules[module], name or "hf")


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("", "got ''"),
        (":hf", "got ':hf'"),
        ("shop_gone", "no module shop_gone"),
        ("shop_good.deeper", "no module shop_good.deeper"),
        ("shop_two", "hf, other; .*--app"),
        ("shop_none", "no Holdfast app"),
        ("shop_none:hf", "shop_none:hf .*int"),
        ("shop_good:gone", "shop_good:gone .*hf"),
        ("shop_broken", r"AttributeError.*shop_broken\.py, line 2"),
        ("shop_lacks", "ModuleNotFoundError.*a_module_that_is_not_there"),
        ("shop_syntax", "SyntaxError"),
        ("shop_exits", "SystemExit"),
        ("..", "module|imported"),
        ("shop good", "no module"),
    ],
)
def test_an_app_that_cannot_be_had_is_refused_with_the_way_on(shop: Path, named: str, words: str) -> None:
    """W-52."""
    with pytest.raises(AppNotFound, match=words) as raised:
        load_app(named)

    assert "; " in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--app", "shop_gone"], 2, "no module shop_gone"),
        (["--app", "shop_broken"], 2, "cannot be imported"),
        (["--app", "shop_empty"], 2, "has no tasks"),
        ([], 2, "--app"),
        (["--app", "shop_good", "--concurrency", "0"], 2, "concurrency"),
        (["--app", "shop_good", "--probe-port", "99999"], 2, "probe-port"),
    ],
)
def test_bad_input_is_one_clear_error(holdfast, shop: Path, arguments: list[str], code: int, words: str) -> None:  # type: ignore[no-untyped-def]
    """W-52."""
    done = holdfast("worker", *arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_refused(holdfast, shop: Path) -> None:  # type: ignore[no-untyped-def]
    """W-02."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = holdfast("worker", "--app", "shop_good", "--probe-port", str(taken.getsockname()[1]))

    assert done.returncode == 2
    assert "--probe-port" in done.stderr


def test_a_burst_works_and_ends(holdfast, shop: Path) -> None:  # type: ignore[no-untyped-def]
    """W-01, W-62: also in several processes."""
    for more in ([], ["--processes", "2"]):
        done = holdfast("worker", "--app", "shop_good", "--burst", *more)

        assert done.returncode == 0, done.stderr
        assert '"worker.stopped"' in done.stderr


@pytest.mark.parametrize("more", [[], ["--burst"], ["--processes", "2"]], ids=str)
def test_a_worker_whose_definition_the_database_refuses_ends(holdfast, shop: Path, more: list[str]) -> None:  # type: ignore[no-untyped-def]
    """W-33: also under a supervisor, which does not start it again."""
    done = holdfast("worker", "--app", "shop_refused", *more)

    assert done.returncode == 2, done.stderr
    assert "'a kind'" in done.stderr
    assert "Traceback" not in done.stderr
    assert "worker.died" not in done.stderr


@pytest.mark.parametrize(
    ("written", "meant"),
    [("500ms", 0.5), ("1s", 1), ("0.2", 0.2), ("5m", 300), ("2h", 7200), ("1d", 86400), ("1h30m", 5400), (" 3 s ", 3)],
)
def test_a_span_is_read_as_people_write_it(written: str, meant: float) -> None:
    """W-45, W-46, W-47, W-48."""
    assert config.Config(error_wait=written).error_wait == timedelta(seconds=meant)


@pytest.mark.parametrize("written", ["", "soon", "-1s", "0", "1 fortnight", "1e999", "PT5M", "5m1h"])
def test_a_span_that_makes_no_sense_is_refused(written: str) -> None:
    """W-45, W-46, W-47, W-48."""
    with pytest.raises(BadSetting) as refused:
        config.Config(error_wait=written)

    assert (refused.value.where, repr(written) in refused.value.what) == ("HOLDFAST_ERROR_WAIT", True)


@pytest.mark.parametrize("odd", ["", "*", "a\nb", "x" * 201], ids=["empty", "star", "control character", "too long"])
@pytest.mark.parametrize("option", ["name", "queue", "tenant"])
def test_a_name_that_none_can_be_is_refused_before_the_worker_connects(option: str, odd: str) -> None:
    given = {"name": None, "queue": "default", "tenant": "acme"} | {option: odd}

    with pytest.raises(BadInput) as caught:
        options_of(config.load(), [str(given["queue"])], [str(given["tenant"])], 5, name=given["name"])

    assert caught.value.where == option


def test_settings_and_arguments_become_a_workers_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """W-45, W-46, W-47, W-48."""
    monkeypatch.setenv("HOLDFAST_LEASE", "500ms")
    monkeypatch.setenv("HOLDFAST_RECOVERY_INTERVAL", "7s")
    monkeypatch.setenv("HOLDFAST_POLL_MIN", "1s")
    monkeypatch.setenv("HOLDFAST_LISTEN", "no")

    found = options_of(config.load(), ["a", "b", "a"], [], 5, name="left", grace=timedelta(seconds=3))

    assert (found.queues, found.tenants, found.concurrency) == (("a", "b"), None, 5)
    assert (found.lease, found.recovery_interval) == (timedelta(seconds=0.5), timedelta(seconds=7))
    assert (found.poll_min, found.poll_max, found.error_wait) == tuple(timedelta(seconds=s) for s in (1, 10, 5))
    assert (found.grace, found.listens, found.identity.startswith("left/")) == (timedelta(seconds=3), False, True)


def test_each_process_gets_the_arguments_but_for_a_port_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """W-02: of an option that is given twice the last counts."""
    given = ["holdfast", "worker", "-a", "x", "-p", "2", "--probe-port=8080", "--burst"]
    monkeypatch.setattr("sys.argv", given)

    commands = _commands(2, 8080)

    group = commands[0][commands[0].index("--group") + 1]
    own = ["--processes", "1", "--supervised", "--group", group]
    assert [command[3:] for command in commands] == [
        [*given[1:], *own, "--probe-port", port] for port in ("8080", "8081")
    ]

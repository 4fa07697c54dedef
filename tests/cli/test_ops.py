"""`holdfast ops`: runs that are queued, listed, shown, followed, cancelled, repeated and decided on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest

from cli.conftest import MAIN, environment
from ops.runs import claim, event, finish, queue, run, status
from worker.running import until

SHA = "0123456789abcdef"


def test_a_run_is_queued_and_its_id_is_all_the_data(cli, db):
    """O-80, C-38: a second call with the same key returns the same run."""
    arguments = ("ops", "queue", "shop", "--env", "staging", "--sha", SHA, "--ref", "main", "--key", f"deploy-{SHA}")
    first, second = cli(*arguments, "--metadata", '{"author": "ann"}', "--priority", "3"), cli(*arguments)

    run_id = first.stdout.strip()
    assert (first.returncode, second.stdout.strip()) == (0, run_id)
    assert f"ops logs -f {run_id}" in first.stderr
    found = run(db, run_id)
    assert (found["git_sha"], found["metadata"]) == (SHA, {"author": "ann"})


def test_runs_are_listed_newest_first_by_status_and_place_and_page_by_page(found, cli, db):
    ids = [queue(db, str(number)) for number in range(4)]
    finish(db, claim(db), "failed")
    queue(db, "other", p_project_id="other", p_env="prod")

    assert [each["run_id"] for each in found("ops", "list", "--project", "proj-123")["runs"]] == ids[::-1]
    assert [
        each["run_id"] for each in found("ops", "list", "--status", "failed", "--status", "running")["runs"]
    ] == ids[:1]
    page = found("ops", "list", "--env", "staging", "--limit", "2")
    rest = found("ops", "list", "--env", "staging", "--before", page["next"])
    assert [each["run_id"] for each in page["runs"] + rest["runs"]] == ids[::-1]
    assert rest["next"] is None
    assert cli("ops", "list", "--kind", "backup").stdout == ""
    done = cli("ops", "list", "--status", "done")
    assert done.returncode == 2
    assert "done" in done.stderr


def test_a_run_is_shown_with_all_that_belongs_to_it(found, cli, db):
    run_id = queue(db, "key-1", {"author": "ann"})
    claim(db)
    event(db, run_id, "Starting build process")
    db.execute("select ops.add_artifact(%s, 'image', 'registry.example/app:1', 'sha256:00')", [run_id])
    finish(db, run_id, "failed", {"error": "Docker build failed", "exit_code": 1})

    shown = found("ops", "show", run_id)
    assert (shown["status"], shown["metadata"]["error"]) == ("failed", "Docker build failed")
    assert [each["url"] for each in shown["artifacts"]] == ["registry.example/app:1"]
    assert [each["message"] for each in shown["events"]][-1] == "Run finished: failed"
    text = cli("ops", "show", run_id)
    assert all(word in text.stdout for word in ("Docker build failed", "registry.example/app:1", "Starting build"))
    assert f"ops retry {run_id}" in text.stderr
    assert found("ops", "artifacts", run_id)["artifacts"] == shown["artifacts"]
    assert cli("ops", "show", "run-none").returncode == 4


def test_a_run_may_be_named_by_its_step_s_number(found, db):
    run_id = queue(db)

    assert found("ops", "show", str(run(db, run_id)["step_id"]))["run_id"] == run_id


def test_logs_print_output_as_it_is_and_fold_groups(cli, db):
    run_id = queue(db)
    claim(db)
    event(db, run_id, "one\n::group::Build\ntwo\n::endgroup::\nthree", p_payload='{"stream": "stdout"}')
    event(db, run_id, "disk is nearly full", "warn")

    lines = cli("ops", "logs", run_id).stdout.splitlines()
    folded = cli("ops", "logs", run_id, "--fold", "--tail", "2").stdout.splitlines()
    rows = [json.loads(line) for line in cli("ops", "logs", run_id, "--json").stdout.splitlines()]

    assert lines[3:] == ["one", "▾ Build", "  two", "three", "warn: disk is nearly full"]
    assert folded == ["one", "▸ Build (1 lines)", "three", "warn: disk is nearly full"]
    assert [row["message"] for row in rows][:3] == ["Run queued", "Run claimed by worker", "Run started"]
    assert cli("ops", "logs", run_id, "--times").stdout.splitlines()[0][2:3] == ":"


def test_following_shows_each_line_as_it_comes_and_ends_with_the_run(db, dsn, tmp_path):
    """O-19"""
    run_id = queue(db)
    claim(db)
    surroundings = environment(dsn=dsn, home=tmp_path / "no home")
    command = [sys.executable, "-c", MAIN, "ops", "logs", "-f", run_id]
    with subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert next(follower.stdout) == "Run queued\n"
        event(db, run_id, "hello")
        assert any("hello" in line for line in follower.stdout)
        finish(db, run_id, "success")
        assert "Run finished: success\n" in follower.stdout.readlines()
        assert follower.wait() == 0


@pytest.mark.parametrize(("end", "code"), [("success", 0), ("failed", 1), ("cancelled", 1)])
def test_wait_prints_the_last_five_events_and_exits_with_the_outcome(cli, db, end, code):
    run_id = queue(db)
    claim(db)
    for number in range(7):
        event(db, run_id, f"line {number}")
    finish(db, run_id, end)

    done = cli("ops", "wait", run_id)

    assert done.returncode == code
    assert len(done.stdout.splitlines()) == 5
    assert done.stdout.splitlines()[0].endswith("line 3")
    assert done.stderr.count(f"{run_id}: {end}") == 1


def test_wait_gives_up_after_its_timeout(cli, db):
    run_id = queue(db)

    done = cli("ops", "wait", run_id, "--timeout", "10ms")

    assert done.returncode == 8
    assert f"ops logs -f {run_id}" in done.stderr
    assert json.loads(cli("ops", "wait", run_id, "--timeout", "10ms", "--json").stdout)["run"]["status"] == "queued"


def test_a_run_is_cancelled_repeated_and_rolled_back(cli, found, db):
    """O-64."""
    good, bad, waiting = (queue(db, key, p_git_sha=f"sha-{key}") for key in ("good", "bad", "waiting"))
    for end in ("success", "failed"):
        finish(db, claim(db), end)

    assert found("ops", "cancel", waiting, "--reason", "wrong branch") == [{"run_id": waiting, "status": "cancelled"}]
    assert run(db, waiting)["metadata"]["reason"] == "wrong branch"
    again = found("ops", "retry", bad, "--reason", "the registry is back")
    back = found("ops", "rollback", bad)

    assert (again["retry_of"], run(db, again["run_id"])["git_sha"]) == (bad, "sha-bad")
    assert (back["rollback_of"], run(db, back["run_id"])["git_sha"]) == (bad, "sha-good")
    refused = cli("ops", "cancel", good)
    assert refused.returncode == 5
    assert "success" in refused.stderr


def test_the_dead_letter_retries_a_failed_run_by_a_new_one(cli, db):
    run_id = queue(db)
    finish(db, claim(db), "failed")

    done = cli("dlq", "retry", str(run(db, run_id)["step_id"]), "--yes")

    assert done.returncode == 0, done.stderr
    assert db.execute("select count(*) from ops.runs where retry_of = %s", [run_id]).fetchone() == (1,)
    assert db.execute("select count(*) from holdfast.dead_steps").fetchone() == (0,)


def test_a_run_that_needs_an_approval_is_decided_on_by_somebody_else(cli, found, db):
    shown = found("ops", "environments", "shop", "prod", "--type", "prod", "--approval", "--branch", "release/*")
    assert [(each["name"], each["needs_approval"]) for each in shown["environments"]] == [("prod", True)]
    first, second = (
        found("ops", "queue", "shop", "--env", "prod", "--key", key, "--actor", "ann")["run_id"] for key in "ab"
    )

    assert found("ops", "show", first)["approval"]["decision"] == "pending"
    assert cli("ops", "approve", first, "--reason", "fine", "--actor", "ann").returncode == 5
    assert found("ops", "approve", first, "--reason", "reviewed", "--actor", "bob")["decision"] == "approved"
    assert found("ops", "reject", second, "--reason", "not today", "--actor", "bob")["status"] == "cancelled"
    assert (claim(db), claim(db)) == (first, None)


def test_projects_are_listed_and_defined(cli, found, db):
    queue(db)

    told = found("ops", "projects", "shop", "--repository", "acme/shop")["projects"]

    assert [(each["project_id"], each["repository"]) for each in told] == [("proj-123", None), ("shop", "acme/shop")]
    assert cli("ops", "projects").stdout.startswith("project\trepository")
    assert cli("ops", "projects", "--repository", "a/b").returncode == 2
    assert [each["name"] for each in found("ops", "environments")["environments"]] == ["staging"]


def test_a_command_without_settings_only_lists(cli, found):
    found("ops", "projects", "shop", "--repository", "acme/shop")
    settings = ("--approval", "--branch", "release/*", "--concurrency", "2", "--on-push", "cancel_all", "--kind", "x")
    (defined,) = found("ops", "environments", "shop", "prod", *settings)["environments"]
    found("ops", "environments", "other", "prod", "--no-approval")

    assert [each["repository"] for each in found("ops", "projects", "shop")["projects"]] == ["acme/shop"]
    assert found("ops", "environments", "shop", "prod")["environments"] == [defined]
    assert found("ops", "environments", "shop", "test")["environments"] == []
    assert cli("ops", "environments", "shop", "--approval").returncode == 2


def test_the_monitor_cancels_stale_runs_and_says_how_many(cli, db, clock):
    """O-93, O-94, O-95."""
    run_id = queue(db)
    claim(db)
    clock.advance(timedelta(minutes=6))

    done = cli("ops", "monitor", "--json")

    assert json.loads(done.stdout) == {"cancelled": 1}
    assert f"Cancelled stale run: {run_id}" in done.stderr
    assert status(db, run_id) == "cancelled"


def test_the_document_s_metrics_can_be_read(found, cli, db):
    """O-99 … O-102."""
    for end in ("success", "success", "failed"):
        queue(db)
        finish(db, claim(db), end)
    queue(db)
    queue(db)
    claim(db)

    told = found("ops", "monitor", "--metrics")

    assert (told["queued_count"], told["workers"]) == (1, [{"claimed_by": "worker-001", "active_runs": 1}])
    assert told["success"] == {"success_count": 2, "failed_count": 1, "success_rate": 66.67}
    assert [each["status"] for each in told["durations"]] == ["failed", "success"]
    assert "success rate in %\t66.67" in cli("ops", "monitor", "--metrics").stdout


def test_any_program_is_a_worker(cli, db):
    """O-85 … O-89: `--once` claims one run, retries it in place, and exits with its outcome."""
    db.execute("update holdfast.policies set base = '0' where policy = 'ops.in_place'")
    program = ("bash", "-c", "echo $HOLDFAST_RUN_ID $TOKEN; echo url=$HOLDFAST_ENV >> $HOLDFAST_OUTPUT; exit $CODE")
    work = ("ops", "work", "--kind", "deploy", "--secret", "HOLDFAST_TEST_TOKEN", "--once")
    good, bad = queue(db, "good"), queue(db, "bad")
    settings = {"test_token": "token-canary-1"}

    def once(code: int) -> subprocess.CompletedProcess[str]:
        script = f"TOKEN=$HOLDFAST_TEST_TOKEN; CODE={code}; {program[2]}"
        return cli(*work, "--", "bash", "-c", script, **settings)

    first, second, third = once(0), once(3), once(0)

    assert (first.returncode, second.returncode, third.returncode) == (0, 1, 0), first.stderr
    assert "No queued runs available" in third.stdout
    assert (status(db, good), run(db, good)["metadata"]["url"]) == ("success", "staging")
    metadata = run(db, bad)["metadata"]
    assert (metadata["error"], metadata["retry_count"], metadata["exit_code"]) == ("Max retries exceeded", 3, 3)
    assert run(db, bad)["claimed_by"].startswith(f"worker-{os.uname().nodename}")
    assert "token-canary-1" not in str(db.execute("select message from ops.run_events").fetchall())


def test_a_worker_warns_once_of_a_secret_that_is_too_short_to_be_masked(cli, db, monkeypatch):
    monkeypatch.setenv("WORK_PIN", "1234")
    run_id = queue(db)

    worker = cli("ops", "work", "--kind", "deploy", "--secret", "WORK_PIN", "--once", "--", "true")

    assert (worker.returncode, status(db, run_id)) == (0, "success")
    assert worker.stderr.count("secret.too_short") == 1
    assert "WORK_PIN" in worker.stderr


def test_a_worker_without_its_secret_does_not_start(cli):
    done = cli("ops", "work", "--kind", "deploy", "--secret", "NO_SUCH_SECRET", "--", "true")

    assert done.returncode == 2
    assert "NO_SUCH_SECRET" in done.stderr


@pytest.mark.parametrize("program", ["no-such-program", "./no-such-program", "plain.txt"])
def test_a_worker_whose_program_cannot_be_executed_does_not_start(cli, db, tmp_path, program):
    """Each of its runs would fail."""
    run_id = queue(db)
    (tmp_path / "plain.txt").write_text("echo hello")
    named = str(tmp_path / program) if program == "plain.txt" else program

    done = cli("ops", "work", "--kind", "deploy", "--once", "--", named)

    assert done.returncode == 2
    assert named in done.stderr
    assert ("chmod +x" in done.stderr) == (program == "plain.txt")
    assert status(db, run_id) == "queued"


def test_a_program_worker_stops_on_sigterm_and_its_run_is_cancelled(db, dsn, tmp_path):
    """R31 for programs."""
    run_id = queue(db)
    surroundings = environment(dsn=dsn, home=tmp_path / "no home")
    command = ["ops", "work", "--kind", "deploy", "--grace", "100ms", "--", "bash", "-c", "echo $$; sleep 99"]
    with subprocess.Popen([sys.executable, "-c", MAIN, *command], env=surroundings, stderr=subprocess.PIPE) as worker:
        until(lambda: status(db, run_id) == "running")
        until(lambda: db.execute("select 1 from ops.run_events where payload ? 'stream'").fetchone())
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0

    assert run(db, run_id)["metadata"]["reason"].startswith("Worker shutdown")

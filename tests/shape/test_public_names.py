"""The public names are fixed: what is added or removed here is a change that users see."""

from __future__ import annotations

import subprocess
import sys

import pytest

import holdfast
from holdfast import Holdfast, errors, flow

NAMES = [
    "Batch", "Continue", "Ctx", "Env", "Event", "Fail", "Handle", "Holdfast", "HoldfastError", "Retry", "RetryPolicy",
    "RunCancelled", "RunFailed", "Snooze", "Task", "WaitTimedOut",
]  # fmt: skip
OF_FLOWS = [
    "Backoff", "Coordinator", "Decision", "Flow", "FlowRun", "ReenqueueDelays", "Step", "StepRetry", "Strategy",
]  # fmt: skip
OF_AN_APP = [
    "aclose", "ahandle", "backoff", "close", "coordinator", "dsn", "face", "flow", "flow_from", "flows", "handle",
    "ingest", "limit", "off", "on", "ops", "rules", "schedule", "task", "use", "work",
]  # fmt: skip
LOADED = """
import sys
import holdfast, holdfast.flow
print(*sorted(name for name in sys.modules if name.startswith("holdfast.")))
"""


@pytest.mark.parametrize(("package", "names"), [(holdfast, NAMES), (flow, OF_FLOWS)])
def test_a_package_has_these_names(package: object, names: list[str]) -> None:
    assert names == package.__all__  # type: ignore[attr-defined]
    assert all(getattr(package, name).__name__ == name for name in names)
    with pytest.raises(AttributeError, match="Backof"):
        package.Backof  # type: ignore[attr-defined]  # noqa: B018


def test_an_app_has_these_attributes() -> None:
    hf = Holdfast("dbname=none")
    public = {name for name in [*dir(hf), *Holdfast.__annotations__] if not name.startswith("_")}

    assert sorted(public) == OF_AN_APP


def test_every_other_error_is_in_the_module_of_errors() -> None:
    assert issubclass(errors.LeaseLost, holdfast.HoldfastError)
    assert not hasattr(holdfast, "LeaseLost")


def test_the_packages_load_none_of_their_modules_before_a_name_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["holdfast.flow"]

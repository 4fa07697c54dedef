"""The flows of an app, by what they are called."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Protocol

from holdfast.errors import BadTask
from holdfast.flow.backoff import Backoff
from holdfast.flow.define import Flow
from holdfast.flow.options import NAMESPACE


class Titled(Protocol):
    """A task, as far as it says what it is of."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def version(self) -> str: ...


class Flows:
    """Each version of each flow, once."""

    def __init__(self) -> None:
        self._flows: dict[tuple[str, str, str], Flow] = {}
        self._from_files: list[tuple[Hashable, Flow]] = []

    def add(self, flow: Flow) -> None:
        """Take a flow in."""
        title = flow.title
        key = (title.namespace, title.name, title.version)
        if key in self._flows:
            raise BadTask(
                f"flow {title.name} {title.version} is defined twice",
                where=title.name,
                next="give one of them another name or version",
            )
        self._flows[key] = flow

    def find(self, name: str, *, namespace: str = NAMESPACE, version: str | None = None) -> Flow:
        """Give a flow by its name; of several versions the one that was defined last, unless one is named."""
        found = [
            f for (n, called, v), f in self._flows.items() if (n, called) == (namespace, name) and version in {None, v}
        ]
        if not found:
            known = ", ".join(" ".join(key) for key in self._flows) or "none"
            wanted = name if version is None else f"{name} {version}"
            raise BadTask(
                f"there is no flow {wanted} in namespace {namespace}", where=wanted, next=f"defined are: {known}"
            )
        return found[-1]

    def from_file(self, told: Hashable) -> Flow | None:
        """Give the flow that a document made already, if it was told the same: two flows may have it inside them."""
        return next((flow for known, flow in self._from_files if known == told), None)

    def remember_file(self, told: Hashable, flow: Flow) -> None:
        """Keep which document made a flow."""
        self._from_files.append((told, flow))

    def backoff_of(self, task: Titled) -> Backoff:
        """Give the backoff of the flow that a task is of: of its version, else of the newest, else the default."""
        of_name = [f for f in self if (f.title.namespace, f.title.name) == (task.namespace, task.name)]
        of_version = [f for f in of_name if f.title.version == task.version]
        return next((f.backoff for f in reversed(of_version or of_name)), Backoff())

    def __iter__(self) -> Iterator[Flow]:
        return iter(self._flows.values())

"""The flows of an app, by what they are called."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.errors import BadTask
from holdfast.flow.define import Flow
from holdfast.flow.options import NAMESPACE


class Flows:
    """Each version of each flow, once."""

    def __init__(self) -> None:
        self._flows: dict[tuple[str, str, str], Flow] = {}

    def add(self, flow: Flow) -> None:
        """Take a flow in."""
        title = flow.title
        key = (title.namespace, title.name, title.version)
        if key in self._flows:
            raise BadTask(
                f"flow {title.name} {title.version} is defined twice; give one of them another name or version"
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
            raise BadTask(f"there is no flow {wanted} in namespace {namespace}; defined are: {known}")
        return found[-1]

    def __iter__(self) -> Iterator[Flow]:
        return iter(self._flows.values())

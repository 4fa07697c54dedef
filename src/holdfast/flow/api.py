"""Flows in Python: `hf.flow` defines them, loads them from documents, finds them, and follows their runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from holdfast.errors import BadDefinition
from holdfast.flow.backoff import Backoff
from holdfast.flow.coordinator import Coordinator
from holdfast.flow.decisions import Strategy
from holdfast.flow.define import Flow
from holdfast.flow.events import FlowExecutor
from holdfast.flow.step import NAMESPACE, VERSION, Title
from holdfast.flow.yaml import needs_extra
from holdfast.spelling import checks_options

__all__ = ["Backoff", "Coordinator", "Flow", "Flows", "Strategy"]  # what annotations of the app name


class Watched(Protocol):
    """The workers of an app, as far as they can be watched."""

    def watch(self, watcher: Coordinator) -> None: ...


class Engine(FlowExecutor, Protocol):
    """The inside of an app, as its flows see it."""

    @property
    def hooks(self) -> Watched: ...


class Titled(Protocol):
    """A run, as far as it names its flow."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def version(self) -> str: ...


class Flows:
    """The flows of an app, each version once. Calling it defines a flow."""

    def __init__(self, engine: Engine) -> None:
        self.backoff = Backoff()  # of flows without their own
        self.watcher = Coordinator(engine.subscribers, self.backoff_of, engine)
        self._engine = engine
        self._flows: dict[tuple[str, str, str], Flow] = {}
        self._by_document: list[tuple[Hashable, Flow]] = []

    @checks_options(BadDefinition)
    def __call__(
        self,
        name: str,
        *,
        namespace: str = NAMESPACE,
        version: str = VERSION,
        context: Any = None,
        backoff: Backoff | None = None,
        description: str | None = None,
    ) -> Flow:
        """Define a flow; add its steps with `@flow.step`. `context` is the type of the flow's input.

        Without it the context consists of what the steps take. A new version stands beside those that the app still
        defines: each run continues with the handlers of its own version, or with the newest where that is gone. A flow
        without its own `backoff` uses the app's.
        """
        _check_flow_name(name)
        title = Title(name, namespace, version, description)
        key = (namespace, name, version)
        flow = Flow(title, self._engine, context, backoff or self.backoff)
        if key in self._flows:
            raise BadDefinition(
                f"flow {name} {version} is defined twice",
                where=name,
                next="give one of them another name or version",
            )
        self._flows[key] = flow
        self._engine.registry.add_definition(flow.definition)
        return flow

    def load(
        self,
        source: str | Path | Mapping[str, Any],
        *,
        handlers: Mapping[str, Callable[..., Any]] | None = None,
        environment: str | None = None,
    ) -> Flow:
        """Define the flow of a YAML document: its path, its text, or the values read from it."""
        with needs_extra():
            from holdfast.flow.yaml.load import Loading
        return Loading(self, handlers or {}, environment).load(source)

    def find(self, name: str, *, namespace: str = NAMESPACE, version: str | None = None) -> Flow:
        """Find a flow by its name; of several versions the one that was defined last, unless one is named."""
        matches = [
            flow
            for (space, title, number), flow in self._flows.items()
            if (space, title) == (namespace, name) and version in {None, number}
        ]
        if not matches:
            known = ", ".join(" ".join(key) for key in self._flows) or "none"
            wanted = name if version is None else f"{name} {version}"
            raise BadDefinition(
                f"there is no flow {wanted} in namespace {namespace}", where=wanted, next=f"defined are: {known}"
            )
        return matches[-1]

    def coordinator(self, strategy: Strategy | None = None) -> Coordinator:
        """Record the decision about each run after every settle of this app's workers; return who does it."""
        if strategy is not None:
            self.watcher.strategy = strategy
        self.watcher.is_deciding = True
        self._engine.hooks.watch(self.watcher)
        return self.watcher

    def backoff_of(self, run: Titled) -> Backoff:
        """Return the backoff of a run's flow: that of its version, else of the newest, else the default."""
        of_name = [f for f in self if (f.title.namespace, f.title.name) == (run.namespace, run.name)]
        of_version = [f for f in of_name if f.title.version == run.version]
        return next((f.backoff for f in reversed(of_version or of_name)), Backoff())

    def from_document(self, key: Hashable) -> Flow | None:
        """Return the flow that a document made already: two flows may include it."""
        return next((flow for known, flow in self._by_document if known == key), None)

    def remember_document(self, key: Hashable, flow: Flow) -> None:
        """Keep which document made a flow."""
        self._by_document.append((key, flow))

    def __iter__(self) -> Iterator[Flow]:
        return iter(self._flows.values())


def _check_flow_name(name: Any) -> None:
    """Refuse a function: a flow is made by its name, and functions are its steps."""
    if isinstance(name, str):
        return
    step = getattr(name, "__name__", "reserve")
    raise BadDefinition(
        f"hf.flow takes the name of a flow, got {name!r}",
        where="name",
        next=f'write order = hf.flow("order"), and @order.step above def {step}',
    )

"""What a handler wants beside its step's own input: asked for once a batch, and put together before the hand-out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from holdfast.kernel.call import Call
from holdfast.kernel.signature import TRACE
from holdfast.models import ClaimedStep, CompletedInput

if TYPE_CHECKING:
    from holdfast.kernel.registry import Handler

Source = Literal["context", "whole", "parent", "inner", "own", "trace", "name"]


@dataclass(frozen=True, slots=True)
class Want:
    """An argument, and where it comes from: under which name, out of what."""

    argument: str
    source: Source
    name: str


class Wish(NamedTuple):
    """A want of one step."""

    step_id: int
    argument: str
    name: str
    source: Source


Completes = Callable[[Sequence[int], Sequence[Wish]], Call[CompletedInput]]
Versions = tuple["Handler", ...]


def question(
    steps: Sequence[ClaimedStep], versions: Callable[[str], Versions], *, is_traced: bool = False
) -> Call[CompletedInput] | None:
    """Ask for what the handlers of claimed steps want, and for their trace; None where none wants anything."""
    asked: list[int] = []
    wishes: list[Wish] = []
    completes: Completes | None = None
    for step in steps:
        handlers = versions(step.kind)
        if handlers[-1].completes is None or not (len(handlers) > 1 or handlers[0].wants or is_traced):
            continue
        completes = handlers[-1].completes
        asked.append(step.step_id)
        for place, handler in enumerate(handlers):
            prefix = "" if len(handlers) == 1 else _prefix(place)
            wishes += [Wish(step.step_id, prefix + w.argument, w.name, w.source) for w in handler.wants]
            if is_traced:
                wishes.append(Wish(step.step_id, prefix + TRACE, "", "trace"))
    return None if completes is None else completes(asked, wishes)


def complete(step: ClaimedStep, answer: CompletedInput, handlers: Versions) -> tuple[ClaimedStep, Handler]:
    """Put what came into a step's input, and choose its handler: that of the version, else the one added last."""
    if len(handlers) == 1:
        return step._replace(input=answer.input), handlers[0]
    place = next((n for n, h in enumerate(handlers) if h.version == answer.version), len(handlers) - 1)
    return step._replace(input=_own(answer.input, _prefix(place))), handlers[place]


def with_constants(step: ClaimedStep, constants: str) -> ClaimedStep:
    """Put arguments that are the same for each step into its input."""
    rest = step.input[1:]  # as text: it may be nested deeper than Python reads
    return step._replace(input=f"{constants[:-1]}{'' if rest == '}' else ', '}{rest}")


def _own(given: Any, prefix: str) -> Any:
    try:
        read = json.loads(given)
    except (RecursionError, ValueError):
        return given  # its own handler refuses it, by the names; others of the batch go on
    return json.dumps({n.removeprefix(prefix): value for n, value in read.items() if n.startswith(prefix)})


def _prefix(place: int) -> str:
    """Keep apart what handlers of several versions call by one name."""
    return f"{place}:"

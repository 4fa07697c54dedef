"""What a handler receives besides its step's input: one call per face and batch, before the handlers run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.handlers.signature import TRACE
from holdfast.kernel.call import Call
from holdfast.models import ClaimedStep, CompletedInput

if TYPE_CHECKING:
    from holdfast.handlers.registry import Handler


@dataclass(frozen=True, slots=True)
class Want:
    """An argument and its origin: a name within a source. The source is a word of the face's own."""

    argument: str
    source: str
    name: str


class Wish(NamedTuple):
    """A request of one step."""

    step_id: int
    argument: str
    name: str
    source: str


Completes = Callable[[Sequence[int], Sequence[Wish]], Call[CompletedInput]]
Versions = tuple["Handler", ...]
_INPUT = ClaimedStep._fields.index("input")


def queries(
    steps: Sequence[ClaimedStep], versions: Callable[[str], Versions], *, is_traced: bool = False
) -> list[Call[CompletedInput]]:
    """Ask each face once for what the handlers of its steps need, and for their trace."""
    by_face: dict[str, tuple[Completes, list[int], list[Wish]]] = {}
    by_kind: dict[str, list[int]] = {}
    for step in steps:
        by_kind.setdefault(step.kind, []).append(step.step_id)
    for kind, ids in by_kind.items():
        handlers = versions(kind)
        handler = handlers[-1]
        if handler.completes is None or not (len(handlers) > 1 or handler.wants or is_traced):
            continue
        _, step_ids, wishes = by_face.setdefault(handler.face, (handler.completes, [], []))
        step_ids += ids
        for place, handler in enumerate(handlers):
            prefix = "" if len(handlers) == 1 else _prefix(place)
            for want in handler.wants:
                argument = prefix + want.argument
                wishes += [Wish(step_id, argument, want.name, want.source) for step_id in ids]
            if is_traced:
                wishes += [Wish(step_id, prefix + TRACE, "", "trace") for step_id in ids]
    return [completes(step_ids, wishes) for completes, step_ids, wishes in by_face.values()]


def complete(step: ClaimedStep, answer: CompletedInput, handlers: Versions) -> tuple[ClaimedStep, Handler]:
    """Add the answers to a step's input, and choose its handler: that of the version, else the one added last."""
    if len(handlers) == 1:
        # Not `_replace`, which takes twice as long: each step of a batch comes by here.
        return ClaimedStep._make((*step[:_INPUT], answer.input, *step[_INPUT + 1 :])), handlers[0]
    place = next((n for n, h in enumerate(handlers) if h.version == answer.version), len(handlers) - 1)
    return step._replace(input=_own(answer.input, _prefix(place))), handlers[place]


def with_constants(step: ClaimedStep, constants: str) -> ClaimedStep:
    """Add the arguments that are the same for each step to its input."""
    rest = step.input[1:]  # as text, because it may be nested deeper than Python can parse
    return step._replace(input=f"{constants[:-1]}{'' if rest == '}' else ', '}{rest}")


def _own(given: Any, prefix: str) -> Any:
    try:
        read = json.loads(given)
    except (RecursionError, ValueError):
        return given  # its own handler rejects it, by name; the others of the batch continue
    return json.dumps({n.removeprefix(prefix): value for n, value in read.items() if n.startswith(prefix)})


def _prefix(place: int) -> str:
    """Distinguish what handlers of several versions call by the same name."""
    return f"{place}:"

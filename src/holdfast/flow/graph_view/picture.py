"""What a drawing of a flow shows: a box a step, and what a step planned itself folded into its box. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from holdfast.flow.reads import TaskStep
from holdfast.flow.run_list import PlannedStep

Mood = Literal[
    "planned", "waiting", "ready", "running", "retrying", "complete", "skipped", "resolved", "failed", "cancelled"
]
# A state is told by a sign, a word and a colour: never by one of them alone.
SIGNS: dict[Mood, str] = {
    "planned": "●", "waiting": "○", "ready": "◎", "running": "▶", "retrying": "↻", "complete": "✓", "skipped": "»",
    "resolved": "◆", "failed": "✗", "cancelled": "⊘",
}  # fmt: skip
FEW = 5  # steps that a step planned itself are shown one by one while they are no more
WORDS: dict[Mood, str] = {
    "waiting": "pending", "ready": "pending", "running": "in_progress", "resolved": "resolved_manually",
    "failed": "error",
}  # fmt: skip
WORST: tuple[Mood, ...] = ("failed", "retrying", "running", "ready", "waiting", "cancelled")
_INNER = re.compile(r"(.+)(?:\.[^.\[\]]+|\[\d+\])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Box:
    """A step as it is drawn; `states` counts those that are folded into it."""

    name: str
    after: tuple[str, ...]
    mood: Mood
    state: str
    note: str = ""
    states: tuple[tuple[str, int], ...] = ()

    @property
    def word(self) -> str:
        """The state in a word: the machine's own, but for what it does not tell apart."""
        return "" if self.mood == "planned" else WORDS.get(self.mood, self.mood)


def of_plan(plan: Sequence[PlannedStep]) -> list[Box]:
    """Draw a definition."""
    return [Box(step.name, tuple(step.after), "planned", "", _planned(step)) for step in plan]


def of_task(steps: Sequence[TaskStep], skipped: Collection[int] = ()) -> list[Box]:
    """Draw a task; a map or a sub-flow of many steps is one box."""
    owners = owners_of([step.name for step in steps])
    names = {step.id: step.name for step in steps}
    inner: dict[str, list[TaskStep]] = defaultdict(list)
    for step in steps:
        for owner in _line_of(step.name, owners):
            inner[owner].append(step)
    folded = {name for name, within in inner.items() if len(within) > FEW}
    hidden = {step.name for step in steps if any(owner in folded for owner in _line_of(step.name, owners))}
    boxes = []
    for step in steps:
        if step.name not in hidden:
            box = _box(step, tuple(names[p] for p in step.parents if p in names and names[p] not in hidden), skipped)
            boxes.append(_fold(box, inner[step.name]) if step.name in folded else box)
    return _threaded(boxes, owners)


def owners_of(names: Sequence[str]) -> dict[str, str]:
    """Say of each step that another step of the task planned which one that was: `ship` of `ship[3]`."""
    known = set(names)
    found = ((name, _INNER.fullmatch(name)) for name in names)
    return {name: match[1] for name, match in found if match is not None and match[1] in known}


def mood_of(step: TaskStep, *, is_skipped: bool = False) -> Mood:
    """Say in one of our words how a step stands."""
    match step.outcome:
        case "succeeded" if is_skipped:
            return "skipped"
        case "succeeded":
            return "resolved" if step.state == "resolved_manually" else "complete"
        case "failed":
            return "failed"
        case "cancelled":
            return "cancelled"
    if step.standing == "held":
        return "running"
    if step.failures:
        return "retrying"
    return "ready" if step.standing == "due" else "waiting"


def tries_of(step: TaskStep) -> int:
    """Count the executions that its limit is about: those since the last fresh start that were more than a part."""
    return step.failures + (1 if step.standing == "held" or step.state == "complete" else 0)


def counted(steps: Sequence[TaskStep]) -> str:
    """Write how many steps are in which state: `9 998 complete, 2 error`."""
    return ", ".join(f"{count:,} {state}".replace(",", " ") for state, count in _states(steps))


def _box(step: TaskStep, after: tuple[str, ...], skipped: Collection[int]) -> Box:
    tries = f"try {tries_of(step)}" if tries_of(step) > 1 else ""
    return Box(step.name, after, mood_of(step, is_skipped=step.id in skipped), step.state, tries)


def _fold(box: Box, within: Sequence[TaskStep]) -> Box:
    """Put what a step planned into its box; until it is over the box stands as the worst of them does."""
    what = "items" if within[0].name.startswith(f"{box.name}[") else "steps"
    note = f"{len(within):,} {what}: ".replace(",", " ") + counted(within)
    moods = {mood_of(step) for step in within}
    worst = next((mood for mood in WORST if mood in moods), box.mood)
    mood = box.mood if box.mood in {"complete", "resolved", "skipped", "cancelled"} else worst
    return replace(box, mood=mood, note=note, states=tuple(_states(within)))


def _threaded(boxes: Sequence[Box], owners: Mapping[str, str]) -> list[Box]:
    """Draw what a step planned between its parents and itself: it begins after them and ends the step."""
    shown = {box.name: box for box in boxes}
    opened = {owners[name] for name in shown if name in owners}

    def after(box: Box) -> tuple[str, ...]:
        own = [name for name in box.after if name in shown]
        if box.name in opened:
            own = [name for name in own if owners.get(name) == box.name]
        if not own and box.name in owners:
            return begins(shown[owners[box.name]])
        return tuple(own) or begins(box)

    def begins(box: Box) -> tuple[str, ...]:
        """What is done before a step, without what it planned itself."""
        outer = [name for name in box.after if name in shown and owners.get(name) != box.name]
        return tuple(outer) if outer or box.name not in owners else begins(shown[owners[box.name]])

    return [replace(box, after=after(box)) for box in boxes]


def _line_of(name: str, owners: Mapping[str, str]) -> list[str]:
    line = []
    while name in owners:
        name = owners[name]
        line.append(name)
    return line


def _states(steps: Sequence[TaskStep]) -> list[tuple[str, int]]:
    return Counter(step.state for step in steps).most_common()


def _planned(step: PlannedStep) -> str:
    notes = [
        f"each of {step.each}" if step.each else "",
        f"flow {step.flow}" if step.flow else "",
        "skippable" if step.skippable else "",
        f"queue {step.queue}" if step.queue not in {None, "default"} else "",
    ]
    return ", ".join(filter(None, notes))

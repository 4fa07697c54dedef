"""What examples are drawn from: shapes of flows, and what happens to a task of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

from flow.parts import Fate, Node
from flow.stage import LEASE, Stage
from holdfast.flow import calls as flow_calls
from holdfast.kernel import calls
from holdfast.models import Outcome

Thing = TypeVar("Thing")
CROWD = 3  # open tasks; with more of them things would seldom meet
MOMENT = timedelta(microseconds=1)
SHORT, LONG = timedelta(seconds=7), timedelta(seconds=1000)


@dataclass(frozen=True)
class Work:
    """A worker claims, and executes what it got; of what there are no fates for, all is done."""

    batch: int
    fates: tuple[Fate, ...]

    def play(self, stage: Stage) -> None:
        fates = [*self.fates, *[Fate()] * self.batch]
        said = [(h, fate, stage.execute(h, fate)) for h, fate in zip(stage.claim(self.batch), fates, strict=False)]
        settle(stage, said)


@dataclass(frozen=True)
class Late:
    """A worker that was silent executes what it holds, or has lost by now."""

    place: int
    fate: Fate

    def play(self, stage: Stage) -> None:
        if held := pick(stage.held, self.place):
            settle(stage, [(held, self.fate, stage.execute(held, self.fate))])


@dataclass(frozen=True)
class Wait:
    """Time goes by: that long, or until something is due or a lease is over."""

    span: timedelta | None
    is_beyond: bool

    def play(self, stage: Stage) -> None:
        until = stage.model.next_moment() if self.span is None else stage.model.now + self.span
        if until is not None:
            stage.wait_until(until + self.is_beyond * MOMENT)


@dataclass(frozen=True)
class Rescue:
    """What is held by the silent is taken back."""

    def play(self, stage: Stage) -> None:
        stage.rescue()


@dataclass(frozen=True)
class TakeOver:
    """Who holds something is silent past the lease, others claim all that is due then, and the silent come back."""

    fate: Fate

    def play(self, stage: Stage) -> None:
        silent = [held for held in stage.held if held.step.lease == held.one.step.lease_id]
        if silent:
            stage.wait_until(stage.model.now + LEASE + MOMENT)
            stage.rescue()
            stage.wait_until(stage.model.next_moment() or stage.model.now)
            stage.claim(20)
            settle(stage, [(held, self.fate, stage.execute(held, self.fate)) for held in silent])


@dataclass(frozen=True)
class GoOn:
    """All that can be done is done, without trouble."""

    def play(self, stage: Stage) -> None:
        finish(stage)


@dataclass(frozen=True)
class Wish:
    """A person retries, resolves or cancels a step."""

    place: int
    wish: str
    result: Any

    def play(self, stage: Stage) -> None:
        steps = stage.model.steps()
        failed = [step for step in steps if step.state == "error"]
        if step := pick(failed if self.wish == "retry" and failed else steps, self.place):
            given = {"result": self.result} if self.wish == "resolve" else {}
            call = getattr(calls, self.wish)(str(step.id), **given)
            stage.agree(call, lambda _: stage.model.wish(step, self.wish, **given))


@dataclass(frozen=True)
class WishForTask:
    """A person retries, resolves or cancels a task."""

    place: int
    wish: str

    def play(self, stage: Stage) -> None:
        if task := pick(stage.model.tasks, self.place):
            call = getattr(calls, self.wish)(str(task.id))
            stage.agree(call, lambda _: stage.model.wish_for_task(task, self.wish))


@dataclass(frozen=True)
class Again:
    """A person does a task again from one of its steps."""

    place: int

    def play(self, stage: Stage) -> None:
        over = [step for task in stage.model.tasks if task.is_over for step in task.steps.values()]
        if step := pick(over or stage.model.steps(), self.place):
            stage.agree(flow_calls.retry_from(step.id), lambda task_id: stage.model.retry_from(task_id, step))


@dataclass(frozen=True)
class Start:
    """Another task of the flow is started."""

    def play(self, stage: Stage) -> None:
        if sum(not task.is_over for task in stage.model.tasks) < CROWD:
            stage.start()


Action = Start | Work | Late | Wait | Rescue | TakeOver | GoOn | Wish | WishForTask | Again


def settle(stage: Stage, said: list[tuple[Any, Fate, Outcome | None]]) -> None:
    stage.settle([(held, fate, outcome) for held, fate, outcome in said if outcome is not None])


def finish(stage: Stage) -> None:
    """Let all that can still be done be done."""
    while True:
        stage.rescue()
        Work(50, ()).play(stage)
        if not stage.model.ready():
            moment = stage.model.next_moment()
            if moment is None:
                return
            stage.wait_until(moment + MOMENT)


def pick(things: list[Thing], place: int) -> Thing | None:
    return things[place % len(things)] if things else None


# Few values, so that they meet.
FATES = [
    *[Fate()] * 5, *[Fate("retry")] * 2, *[Fate("silent")] * 2, Fate("dies"), Fate("raises"), Fate("unheard"),
    Fate("fail"), Fate("retry", SHORT), Fate("retry", LONG), Fate("snooze", SHORT), Fate("release"),
]  # fmt: skip
RESULTS: list[Any] = [None, "by hand", ["by", "hand"]]
WISHES = ["retry", "retry", "resolve", "cancel"]
MAKERS: dict[Callable[[Random], Action], int] = {
    lambda chance: Work(chance.choice([1, 2, 3, 20]), tuple(chance.choices(FATES, k=4))): 10,
    lambda chance: Wait(chance.choice([None, None, SHORT, timedelta(seconds=31)]), chance.random() < 0.5): 6,
    lambda chance: Late(_place(chance), chance.choice(FATES)): 4,
    lambda chance: TakeOver(chance.choice(FATES)): 3,
    lambda _: Rescue(): 1,
    lambda chance: Wish(_place(chance), chance.choice(WISHES), chance.choice(RESULTS)): 3,
    lambda chance: Again(_place(chance)): 2,
    lambda _: Start(): 3,
    lambda _: GoOn(): 1,
    lambda chance: WishForTask(_place(chance), chance.choice(WISHES)): 1,
}
LENGTH = 50


def _place(chance: Random) -> int:
    return chance.randrange(60)


@st.composite
def tales(draw: st.DrawFn) -> list[Action]:
    """Half of a long tale that a number stands for; made smaller, less and less of it.

    Drawn action by action they would be short, and much the same: Hypothesis makes most examples from parts of others.
    """
    chance = Random(draw(st.integers(0, 2**32)))
    makers = chance.choices([*MAKERS], weights=[*MAKERS.values()], k=LENGTH)
    kept = draw(st.lists(st.booleans(), min_size=LENGTH, max_size=LENGTH))
    return [action for action, is_kept in zip([make(chance) for make in makers], kept, strict=True) if is_kept]


@st.composite
def flows(draw: st.DrawFn) -> tuple[Node, ...]:
    """The first so many steps of a flow that a number stands for."""
    chance = Random(draw(st.integers(0, 2**32)))
    return _nodes(chance, "abcdef", is_outer=True)[: draw(st.integers(1, 6))]


def _nodes(chance: Random, names: str, *, is_outer: bool) -> tuple[Node, ...]:
    """A DAG: each step waits for some of those before it; some map over a list, some are flows of their own."""
    nodes: list[Node] = []
    for name in names:
        after = tuple(node.name for node in nodes if chance.random() < 0.4)
        lists = [each for each in after if _gives_a_list(nodes, each)]
        sorts = ["plain", "plain", "sub-flow", *(["map", "map of sub-flows"] if lists else [])]
        sort = chance.choice(sorts) if is_outer else "plain"
        each = chance.choice(lists) if sort.startswith("map") else None
        inner = _nodes(chance, "abc"[: chance.randint(1, 3)], is_outer=False) if "sub-flow" in sort else ()
        limit, retryable = chance.choice([(3, True), (3, True), (2, True), (1, True), (3, False)])
        nodes.append(Node(name, after, limit, retryable, chance.choice([1, 2, 3, 0]), each, inner))
    return tuple(nodes)


def _gives_a_list(nodes: list[Node], name: str) -> bool:
    node = next(node for node in nodes if node.name == name)
    return node.each is not None or not node.inner

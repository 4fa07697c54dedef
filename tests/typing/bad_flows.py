"""Mistakes with flows, each with what the tools say on its line."""

from __future__ import annotations

from holdfast import Event, Holdfast

hf = Holdfast()
order = hf.flow("order")


@order.step
def count(goods: list[str]) -> int:
    return len(goods)


@order.step(after=7)  # mypy: call-overload untyped-decorator, pyright: reportArgumentType
def wait() -> None:
    return


@order.step(each=count)  # mypy: arg-type, pyright: reportArgumentType
def ship(item: str) -> str:
    return item


@order.step(aftr=count)  # mypy: call-overload untyped-decorator, pyright: reportCallIssue
def misspelt() -> None:
    return


@order.step(limits=[7])  # mypy: list-item, pyright: reportArgumentType
def limited() -> None:
    return


@hf.on("flow.step.*")  # mypy: type-var, pyright: reportArgumentType
def report(event: Event, more: int) -> None:
    print(event, more)


def start() -> None:
    run = order.start(goods=["cup"])
    total: str = run.result_of(count)  # mypy: assignment, pyright: reportAssignmentType
    run.result_of(7)  # mypy: call-overload, pyright: reportArgumentType reportCallIssue
    count(goods=7)  # mypy: arg-type, pyright: reportArgumentType
    print(total)

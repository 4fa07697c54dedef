"""Mistakes with tasks, each with what the tools say on its line."""

from __future__ import annotations

from typing import Annotated

from pydantic import SecretStr

from holdfast import Batch, Ctx, Env, Holdfast, LeaseLost  # mypy: attr-defined, pyright: reportAttributeAccessIssue
from holdfast.flow import Floww  # mypy: attr-defined, pyright: reportAttributeAccessIssue

hf = Holdfast()
print(LeaseLost, Floww)


@hf.task(queue="mail")
def welcome(ctx: Ctx, user_id: int) -> str:
    return f"{ctx.attempt}, {user_id}"


@hf.task
async def fetch(url: str) -> bytes:
    return url.encode()


# Without a default the checkers see an argument that each start has to pass; at run time it is left out.
@hf.task
def pay(order_id: int, key: Annotated[SecretStr, Env("SHOP_KEY")]) -> None:
    print(order_id, key)


@hf.task(que="mail")  # mypy: call-overload untyped-decorator, pyright: reportCallIssue
def misspelt() -> None:
    return


def start() -> None:
    welcome.start("7")  # mypy: arg-type, pyright: reportArgumentType
    welcome.start(user=7)  # mypy: call-arg, pyright: reportCallIssue
    welcome.start()  # mypy: call-arg, pyright: reportCallIssue
    welcome.start(user_id=7, twice=True)  # mypy: call-arg, pyright: reportCallIssue
    welcome.options(prio=9).start(7)  # mypy: call-arg, pyright: reportCallIssue
    number: int = welcome.start(7).result()  # mypy: assignment, pyright: reportAssignmentType
    length: int = fetch.start("/").result()  # mypy: assignment, pyright: reportAssignmentType
    print(number, length)
    pay.start(order_id=7)  # mypy: call-arg, pyright: reportCallIssue
    welcome.start_many([7, 8])  # mypy: list-item, pyright: reportArgumentType


async def astart() -> None:
    await fetch.astart(7)  # mypy: arg-type, pyright: reportArgumentType


def call(ctx: Ctx) -> None:
    welcome(7)  # mypy: call-arg arg-type, pyright: reportCallIssue
    welcome(ctx, "7")  # mypy: arg-type, pyright: reportArgumentType
    content: bytes = fetch("/")  # mypy: assignment, pyright: reportAssignmentType
    print(content)


def reach_inside() -> None:
    print(hf.registry)  # mypy: attr-defined, pyright: reportAttributeAccessIssue
    print(hf.make)  # mypy: attr-defined, pyright: reportAttributeAccessIssue


@hf.task(batch=10)  # mypy: arg-type, pyright: reportArgumentType reportCallIssue
def no_list(batch: Batch, number: int) -> list[int]:
    return [number] * len(batch)


@hf.task(batch=10)  # mypy: arg-type, pyright: reportArgumentType reportCallIssue
def no_results(batch: Batch, numbers: list[int]) -> int:
    return len(batch) + len(numbers)


@hf.task(batch=10)
def push(batch: Batch, numbers: list[dict[str, int]]) -> list[int]:
    return [len(batch)] * len(numbers)


def start_batches() -> None:
    push.start(7)  # mypy: arg-type, pyright: reportArgumentType
    push.start_many([7])  # mypy: list-item, pyright: reportArgumentType
    text: str = push.start({"a": 1}).result()  # mypy: assignment, pyright: reportAssignmentType
    print(text)

"""Tasks of every kind of function, as a typed team writes them: neither tool finds anything."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, assert_type

from pydantic import SecretStr

from holdfast import Batch, Ctx, Env, Fail, Handle, Holdfast, RetryPolicy, Task

hf = Holdfast()


@dataclass(frozen=True)
class Receipt:
    number: int


@hf.task
def add(a: int, b: int = 2) -> int:
    return a + b


@hf.task(queue="mail", retry=RetryPolicy(limit=5))
def welcome(ctx: Ctx, user_id: int) -> str:
    return f"{ctx.attempt}, {user_id}"


@hf.task
async def fetch(url: str) -> Receipt:
    return Receipt(len(url))


@hf.task(timeout="10s")
async def charge(ctx: Ctx, *, order_id: int) -> Receipt:
    return Receipt(order_id + ctx.attempt)


@hf.task
def sweep() -> None:
    return


@hf.task
def tell(ctx: Ctx) -> None:
    ctx.note("told")


# A parameter that may be anything is not taken for `ctx`, nor such a result for a coroutine.
@hf.task
def store(payload: Any) -> str:
    return str(payload)


@hf.task
def show(payload: object, width: int) -> str:
    return str(payload)[:width]


@hf.task
def ask(url: str) -> Any:
    return {"url": url}


@hf.task
def keep(ctx: Ctx, document: dict[str, Any]) -> list[Any]:
    return [ctx.attempt, document]


# The worker supplies secrets, in any number: a start leaves them out.
@hf.task
def pay(
    ctx: Ctx,
    order_id: int,
    key: Annotated[SecretStr, Env("SHOP_KEY")] = Env.supplied,
    salt: Annotated[SecretStr, Env("SHOP_SALT")] = Env.supplied,
    proxy: Annotated[SecretStr, Env("SHOP_PROXY")] | None = None,
) -> str:
    assert_type(key, SecretStr)
    return f"{order_id}, {len(key.get_secret_value())}"


def start(user_id: int) -> None:
    started: Handle[int] = add.start(1)
    assert_type(started.result(), int)
    assert_type(add.start(a=1, b=3).result(timeout=5), int)
    assert_type(welcome.start(user_id=user_id).result(), str)
    assert_type(welcome.options(key=f"welcome:{user_id}", priority=9).start(user_id).result(), str)
    assert_type(welcome.start_many({"user_id": number} for number in range(3)), int)
    assert_type(fetch.start(url="/7").result(), Receipt)
    assert_type(charge.start(order_id=7).result(), Receipt)
    tell.start()
    sweep.start()
    store.start(payload={"a": [1]})
    show.start(payload={}, width=4)
    ask.start("/").result()["url"]
    keep.start(document={"a": 1})
    keep.start({"a": 1})
    assert_type(pay.start(order_id=7).result(), str)
    assert_type(pay.start(7).result(), str)


async def astart(user_id: int) -> None:
    started: Handle[int] = await add.astart(1)
    assert_type(await started, int)
    assert_type(await (await welcome.astart(user_id=user_id)).aresult(), str)
    assert_type(await (await charge.options(unique_key="7").astart(order_id=7)).aresult(), Receipt)


async def call(ctx: Ctx) -> None:
    """A task is still the function that it was."""
    assert_type(add(1, 2), int)
    assert_type(welcome(ctx, user_id=7), str)
    coming: Coroutine[Any, Any, Receipt] = fetch("/")
    assert_type(await coming, Receipt)
    assert_type(await charge(ctx, order_id=7), Receipt)
    assert_type(pay(ctx, 7, SecretStr("test")), str)
    ask("/")["url"]


def annotate() -> None:
    """The function as it was written may be left out of an annotation."""
    by_id: Task[[int], str] = welcome
    any_parameters: list[Task[..., Any]] = [add, welcome, fetch, charge]
    function: Callable[[int], int] = add
    print(by_id.name, any_parameters, function, list(map(add, [1, 2])))


@hf.task(batch=250, by="number", batch_wait="200ms", call_weight=10)
def push(batch: Batch, receipts: list[Receipt]) -> list[int | Fail]:
    return [Fail("no") if receipt.number < 0 else len(batch) for receipt in receipts]


@hf.task(batch=10)
async def apush(receipts: list[Receipt]) -> list[str]:
    return [str(receipt.number) for receipt in receipts]


def start_batches() -> None:
    assert_type(push.start(Receipt(7)).result(), int)
    assert_type(apush.start(Receipt(7)).result(), str)
    assert_type(push.start_many([Receipt(7), Receipt(8)]), int)
    push.options(priority=5).start(Receipt(9))

"""What a step's function is given beside the context and its parents' results."""

from __future__ import annotations

from holdfast import Ctx, Holdfast
from holdfast.testing import drain


def test_a_config_is_given_without_a_question_to_the_database(hf: Holdfast) -> None:
    """T-145: alone, beside what is asked for, and to a condition."""
    flow = hf.flow("config")

    @flow.step(config={"rate": 3})
    def alone(config: dict[str, int]) -> int:
        return config["rate"]

    @flow.step(after=alone, config={"least": 3}, when=lambda alone, config: alone >= config["least"])
    def beside(alone: int, order_id: int, config: dict[str, int]) -> list[int]:
        return [alone, order_id, config["least"]]

    @flow.step
    def other(config: str) -> str:
        return config  # without one of its own it is a field of the context as any other

    run = flow.start(order_id=7, config="field")
    drain(hf)

    assert run.result(1) == {"alone": 3, "beside": [3, 7, 3], "other": "field"}
    (handler,) = hf._engine.registry.versions("config.alone")
    assert (handler.wants, handler.constants) == ((), '{"config": {"rate": 3}}')


def test_a_field_may_be_called_ctx_and_a_context_anything(hf: Holdfast) -> None:
    """T-48: Ctx is found by its type, in the function and in its condition."""
    flow = hf.flow("names")

    def is_first(attempt: Ctx, ctx: str) -> bool:
        return attempt.attempt == 1 and ctx == "field"

    @flow.step(when=is_first)
    def look(ctx: str) -> str:
        return ctx

    run = flow.start(ctx="field")
    drain(hf)

    assert run.result_of(look) == "field"

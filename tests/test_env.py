"""Env: a secret by the name of its variable. It is read when used, shown by name only, and never part of an input."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, Secret, SecretBytes, SecretStr
from typing_extensions import TypedDict

from holdfast import Ctx, Env, Holdfast
from holdfast.errors import BadDefinition, InputRefused, SecretMissing
from holdfast.masking import MASK, known

KEY = "sk-canary-of-test-env"


@pytest.fixture
def hf() -> Holdfast:
    return Holdfast("dbname=none")


class Card(BaseModel):
    number: SecretStr


class Payment(BaseModel):
    card: Card | None = None


class Node(BaseModel):
    children: list[Node] = []
    key: SecretBytes | None = None


@dataclass
class Login:
    user: str
    password: SecretStr


class Fields(TypedDict):
    token: Secret[str]


def test_it_is_read_from_the_variable_or_its_file_and_masked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}-in-a-file\n")
    monkeypatch.setenv("SHOP_KEY_FILE", str(file))
    assert Env("SHOP_KEY").read() == f"{KEY}-in-a-file"
    file.write_text(f"{KEY}-replaced")
    assert Env("SHOP_KEY").read() == f"{KEY}-replaced"

    monkeypatch.setenv("SHOP_KEY", KEY)
    assert Env("SHOP_KEY").read() == KEY
    assert known.text(f"{KEY} {KEY}-in-a-file {KEY}-replaced") == f"{MASK} {MASK} {MASK}"


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe"], ids=["absent", "empty", "blank", "not UTF-8"])
def test_a_missing_one_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None) -> None:
    monkeypatch.setenv("SHOP_KEY", "")
    with pytest.raises(SecretMissing) as unset:
        Env("SHOP_KEY").read()
    assert unset.value.where == "SHOP_KEY"
    assert Env("SHOP_KEY").find() is None

    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("SHOP_KEY_FILE", str(file))
    with pytest.raises(SecretMissing, match="SHOP_KEY_FILE"):
        Env("SHOP_KEY").read()


def test_it_shows_its_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DSN", KEY)
    env = Env("SHOP_DSN")
    env.read()

    assert (repr(env), str(env), f"{env}") == ("Env('SHOP_DSN')",) * 3
    assert env == pickle.loads(pickle.dumps(env)) == Env("SHOP_DSN")
    assert hash(env) == hash(Env("SHOP_DSN"))


@pytest.mark.parametrize("name", ["", "A-B", "1A", "A B", None, 7, "ключ"])
def test_a_name_that_no_variable_has_is_refused(name: Any) -> None:
    with pytest.raises(BadDefinition, match="environment variable"):
        Env(name)


def test_a_secret_is_not_an_argument_of_a_start(hf: Holdfast) -> None:
    @hf.task
    def charge(
        ctx: Ctx,
        api_key: Annotated[SecretStr, Env("STRIPE_KEY")],
        order_id: int,
        *,
        proxy: Annotated[SecretStr, Env("PROXY")] | None = None,
        salt: Annotated[SecretBytes, Env("SALT")] = Env.supplied,
    ) -> int:
        return order_id

    signature = charge.handler.signature

    assert signature.names() == ["order_id"]
    assert signature.check((7,), {}) == {"order_id": 7}
    assert signature.usage() == "it takes (order_id: 'int')"
    assert [(each.name, each.env.name, each.is_required) for each in signature.secrets] == [
        ("api_key", "STRIPE_KEY", True), ("proxy", "PROXY", False), ("salt", "SALT", True),
    ]  # fmt: skip
    with pytest.raises(InputRefused) as refused:
        signature.check((7,), {"api_key": "sk-1"})
    assert (refused.value.where, "STRIPE_KEY" in str(refused.value.next)) == ("api_key", True)
    assert "sk-1" not in str(refused.value)


def test_a_direct_call_passes_the_secret_itself(hf: Holdfast) -> None:
    @hf.task
    def charge(order_id: int, api_key: Annotated[SecretStr, Env("STRIPE_KEY")] = Env.supplied) -> str:
        return api_key.get_secret_value()

    assert charge(7, SecretStr("test")) == "test"
    with pytest.raises(SecretMissing):
        charge(7)
    assert repr(inspect.signature(charge).parameters["api_key"].default) == "Env.supplied"


@pytest.mark.parametrize("hint", [str, int, list[SecretStr], dict[str, Any]])
def test_an_env_belongs_to_a_secret_string(hf: Holdfast, hint: Any) -> None:
    def charge(api_key: Any) -> None: ...

    charge.__annotations__["api_key"] = Annotated[hint, Env("STRIPE_KEY")]
    with pytest.raises(BadDefinition) as refused:
        hf.task(charge)
    assert refused.value.where == "api_key"
    assert "SecretStr" in str(refused.value.next)


@pytest.mark.parametrize(
    ("hint", "place"),
    [
        (SecretStr, "given"),
        (SecretBytes | None, "given"),
        (Secret[int], "given"),
        (list[SecretStr], "given"),
        (dict[str, tuple[int, SecretStr]], "given"),
        (Annotated[SecretStr, Field(min_length=1)], "given"),
        (Payment, "given.card.number"),
        (Login, "given.password"),
        (Fields, "given.token"),
        (list[Node], "key"),
    ],
)
def test_a_plain_secret_in_an_input_is_refused_with_the_fix(hf: Holdfast, hint: Any, place: str) -> None:
    """Pydantic would store asterisks, and the handler would receive those."""

    def charge(given: Any) -> None: ...

    charge.__annotations__["given"] = hint
    with pytest.raises(BadDefinition) as refused:
        hf.task(charge)
    assert str(refused.value.where).endswith(place)
    assert "Env(" in str(refused.value.next)


def test_a_secret_in_a_result_is_refused(hf: Holdfast) -> None:
    def log_in(user: str) -> Login: ...

    with pytest.raises(BadDefinition, match="password"):
        hf.task(log_in)


def test_a_secret_in_the_context_of_a_flow_is_refused(hf: Holdfast) -> None:
    with pytest.raises(BadDefinition, match=r"card\.number"):
        hf.flow("declared", context=Payment)
    flow = hf.flow("order")
    with pytest.raises(BadDefinition, match="key"):

        @flow.step
        def charge(key: SecretStr) -> None: ...


def test_a_secret_of_a_step_is_no_field_of_its_flows_context(hf: Holdfast) -> None:
    flow = hf.flow("order")

    @flow.step
    def prices(order_id: int) -> list[int]:
        return [order_id]

    @flow.step(each=prices, when=lambda order_id: order_id > 0)
    def charge(item: int, order_id: int, api_key: Annotated[SecretStr, Env("STRIPE_KEY")]) -> int:
        return item

    assert flow.context.schema()["properties"].keys() == {"order_id"}
    assert "STRIPE_KEY" not in str(flow.plan)
    assert [each.name for each in charge.handler.signature.secrets] == ["api_key"]


def test_the_value_of_a_secret_is_refused_as_an_argument(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRIPE_KEY", "argument-canary")
    Env("STRIPE_KEY").read()

    @hf.task
    def charge(headers: dict[str, str]) -> None: ...

    flow = hf.flow("order")

    @flow.step
    def pay(headers: dict[str, str]) -> None: ...

    for start in (charge.start, flow.start):
        with pytest.raises(InputRefused) as refused:
            start(headers={"Authorization": "Bearer argument-canary"})
        assert refused.value.where == "STRIPE_KEY"
        assert "argument-canary" not in str(refused.value)

"""The protocol that the docs describe is the one that the simulated shop speaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from holdfast.connectors import http
from simulated import simulated_shop

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "channel.openapi.yaml"


def validator(path: str, method: str) -> Draft202012Validator:
    page = yaml.safe_load(PAGE.read_text("utf-8"))
    schema = page["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": page["components"]})


@pytest.mark.parametrize("path", ["/health", "/items", "/prices:read", "/prices"])
def test_the_simulated_shop_answers_as_the_reference_says(tmp_path: Path, path: str) -> None:
    """A-118: a local simulated channel is shipped, and its protocol is documented."""
    sent: dict[str, dict[str, Any]] = {
        "/prices:read": {"ids": ["item-1", "nobody"]},
        "/prices": {"changes": [
            {"id": "item-1", "price": "3.00", "expected": {"price": "11.00", "currency": "EUR"}},
            {"id": "item-2", "compareAt": None, "expected": {"compareAt": "1.00", "currency": "EUR"}},
            {"id": "nobody", "price": "1.00", "expected": {"price": "1.00", "currency": "EUR"}},
        ]},
    }  # fmt: skip
    method = "POST" if path in sent else "GET"
    with simulated_shop(tmp_path, items=3) as shop:
        answer = http.call(method, f"{shop.url}{path}", json=sent.get(path)).json()

    validator(path, method.lower()).validate(answer)
    assert answer.get("results", [{"error": 0}] * 2)[1].get("error") is not None

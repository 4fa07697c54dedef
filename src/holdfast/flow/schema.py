"""Writes the JSON Schema of flows in YAML, for editors: `python -m holdfast.flow.schema > flow.schema.json`."""

from __future__ import annotations

import json
import sys

from holdfast.flow.yaml import document


def written() -> str:
    """Return it as text."""
    return json.dumps(document.schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(written())

"""`holdfast config`: the settings in force, and where each comes from."""

from __future__ import annotations

from pydantic import SecretStr

from holdfast import config as settings
from holdfast.cli.connection import load_settings, masked
from holdfast.cli.options import output_options
from holdfast.cli.render import AsJson, data_json
from holdfast.cli.table import data_table

COLUMNS = ("setting", "value", "source", "meaning")


@output_options
def config(*, as_json: AsJson = False) -> None:
    """Show the settings in force, each with its source: default, environment or file; secrets are masked."""
    loaded = load_settings()
    rows = [
        {
            "name": settings.variable(name),
            "value": shown(name, getattr(loaded, name)),
            "source": settings.source(name),
            "description": field.description or "",
        }
        for name, field in settings.Config.model_fields.items()
    ]
    if as_json:
        data_json({"settings": rows})
    else:
        data_table(COLUMNS, [tuple(row.values()) for row in rows])


def shown(name: str, value: object) -> str | None:
    """Format a setting's value, with secrets masked."""
    match value:
        case None:
            return None
        case SecretStr() if name == "dsn":
            return masked(value.get_secret_value())
        case _:
            return str(value)  # a SecretStr becomes stars

"""A wish for each of some ids: each is reported, and the first refusal is what the command ends with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import typer

from holdfast.cli.common import opened
from holdfast.cli.render import data_json, data_table, show_error
from holdfast.errors import HoldfastError, RefusedError
from holdfast.kernel import db
from holdfast.kernel.call import Call
from holdfast.reads.run_detail import parse_id


def act_on_each(ids: Sequence[str], wish: Callable[[str], Call[str]], *, as_json: bool) -> None:
    """Carry out a wish for one id after the other, whether or not another was refused."""
    for one in ids:
        parse_id(one)  # before anything is moved
    done: list[dict[str, str]] = []
    refusals: list[HoldfastError] = []
    with opened() as connection:
        for one in ids:
            try:
                (state,) = db.run(connection, wish(one))
                done.append({"id": one, "state": state})
            except RefusedError as error:
                refusals.append(error)
    if as_json:
        data_json({"done": done})
    else:
        data_table(("id", "state"), [(d["id"], d["state"]) for d in done])
    for refusal in refusals:
        show_error(refusal, as_json=as_json)
    if refusals:
        raise typer.Exit(refusals[0].exit_code)

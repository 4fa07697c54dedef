"""The reference of the command line has each command with each of its options, and each exit code."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from holdfast import errors
from holdfast.cli import app

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text("utf-8")
EVERYWHERE = {"--help", "--json", "--quiet", "--no-color"}  # told once, at the top


def commands(group, path=()):
    """Give each command's name and options."""
    for name, command in group.commands.items():
        if command.hidden:  # a former name
            continue
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (
                " ".join((*path, name)),
                {
                    option
                    for each in command.params
                    if not getattr(each, "hidden", False)
                    for option in (*each.opts, *each.secondary_opts)
                    if option.startswith("--")
                },
            )


def entries():
    """Read the tables: a command stands at a row's beginning, its options in the same row or below it."""
    rows = re.findall(r"^\| `([a-z]+(?: [a-z][a-z-]*)?)((?: [^`]*)?)` \| (.*) \|$", TEXT, re.MULTILINE)
    told = {}
    for name, usage, meaning in rows:
        told.setdefault(name, set()).update(re.findall(r"--[a-z-]+", f"{usage} {meaning}"))
    return told


def test_each_command_is_there_with_each_of_its_options():
    """Deliver: docs from the real thing."""
    there = dict(commands(typer.main.get_command(app)))
    told = entries()

    assert set(there) <= set(told)
    for name, options in there.items():
        assert options - EVERYWHERE <= told[name] <= options, name


def test_each_command_has_the_options_that_all_have():
    """But psql, to which all is passed on."""
    there = dict(commands(typer.main.get_command(app)))

    assert {name for name, options in there.items() if not options >= EVERYWHERE - {"--help"}} == {"db psql"}


def test_each_exit_code_is_there():
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)}
    raised = {leaf.exit_code for leaf in errors._leaves(errors.HoldfastError)} | {errors.HoldfastError.exit_code}

    assert raised <= told
    assert {0, 1, 3, 9, 130} <= told

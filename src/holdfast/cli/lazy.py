"""A group whose commands are imported on use: listing them needs only their names and one line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from holdfast import faces


@dataclass(frozen=True, slots=True)
class Entry:
    """A command or a group: its location, as `module:attribute`, and the first line of its help."""

    place: str
    help: str


class LazyCommands(MutableMapping[str, Any]):
    """Commands by name. Looking one up imports it; counting and naming them does not."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = dict(entries)
        self._loaded: dict[str, Any] = {}

    def listed(self, name: str) -> TyperCommand | None:
        """Return what a list shows about a command, without importing it."""
        entry = self._entries.get(name)
        return None if entry is None else TyperCommand(name, help=entry.help)

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(name, self._entries[name].place)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._entries[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def lazy_group(entries: Mapping[str, Entry]) -> type[TyperGroup]:
    """Create the class of a group with these commands."""

    class LazyGroup(TyperGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**(settings | {"commands": None}))
            self._lazy = LazyCommands(entries)
            self.commands = self._lazy
            self._is_listing = False

        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's name for it
            return list(self._lazy)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - typer's name for it
            return self._lazy.listed(cmd_name) if self._is_listing else self._lazy.get(cmd_name)

        def format_help(self, ctx: Any, formatter: Any) -> None:
            self._is_listing = True
            try:
                super().format_help(ctx, formatter)
            finally:
                self._is_listing = False

        def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
            self._is_listing = True
            try:
                return super().shell_complete(ctx, incomplete)
            finally:
                self._is_listing = False

    return LazyGroup


def _load(name: str, place: str) -> Any:
    """Import a command or a group, and build it as typer would at the start."""
    loaded = faces.load(place)
    holder = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    if isinstance(loaded, typer.Typer):
        holder.add_typer(loaded, name=name)
    else:
        holder.command(name)(loaded)
    return typer.main.get_group(holder).commands[name]

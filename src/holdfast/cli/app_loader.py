"""Loads the app of a command: `--app module:name`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import AppNotFound

if TYPE_CHECKING:
    from holdfast.app import Holdfast


def load_app(named: str) -> Holdfast:
    """Import an app; the working directory is on the path, as with `python -m`."""
    module_name, _, name = named.partition(":")
    if not module_name:
        raise AppNotFound(
            f"--app must be module:name, got {named!r}", where="--app", next="write it as in --app shop.tasks:hf"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.startswith(error.name):
            raise AppNotFound(
                f"there is no module {module_name} here or on the path",
                where=module_name,
                next="run it in the module's folder, or install its package",
            ) from error
        raise _broken(module_name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(module_name, error) from error
    return _choose(module, module_name, name)


def _choose(module: object, module_name: str, name: str) -> Holdfast:
    from holdfast.app import Holdfast

    apps = {key: value for key, value in vars(module).items() if isinstance(value, Holdfast)}
    if name:
        found = getattr(module, name, None)
        if isinstance(found, Holdfast):
            return found
        problem = f"is a {type(found).__name__}" if found is not None else "does not exist"
        raise AppNotFound(f"{module_name}:{name} {problem}", where="--app", next=f"the module has {_listed(apps)}")
    if len(set(map(id, apps.values()))) == 1:
        return next(iter(apps.values()))
    raise AppNotFound(
        f"{module_name} has {_listed(apps)}", where="--app", next=f"name one, as in --app {module_name}:hf"
    )


def _listed(apps: dict[str, Holdfast]) -> str:
    return ", ".join(sorted(apps)) if apps else "no Holdfast app at its top level"


def _broken(module_name: str, error: BaseException) -> AppNotFound:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})" if trace is not None else ""
    return AppNotFound(
        f"{module_name} cannot be imported: {type(error).__name__}: {error}{place}",
        where=module_name,
        next=f"see the traceback with python -c 'import {module_name}'",
    )

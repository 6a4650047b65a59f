"""The config file of `ctxrel run`: its options in a [run] table of TOML."""

import math
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from ...evaluators.checks import closest
from ...evaluators.errors import UsageError

CONFIG = "ctxrel.toml"
TABLE = "run"
_TYPES: dict[type, tuple[type, ...]] = {int: (int,), float: (int, float), bool: (bool,)}
"""Of what an option takes: the types of TOML that fit; text fits all else."""
_ENDPOINT = ("base_url", "api_key_env", "insecure", "judge_also_base_url", "judge_also_key_env", "ray_address")
"""Options that say where records go, and with which key."""
_WORDS = {int: "a whole number", float: "a number", bool: "true or false"}


def read_config(path: Path, parameters: Sequence[Any]) -> dict[str, object]:
    """The defaults that a file sets, by the names of a command's parameters. Raises UsageError."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read the config file {str(path)!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the config file {str(path)!r} is not UTF-8; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the config file {str(path)!r} is no TOML: {error}") from None
    for key in document:
        if key != TABLE:
            raise UsageError(f"{path}: unknown key {key!r}; options stand in the table [{TABLE}]")
    table = document.get(TABLE, {})
    if not isinstance(table, Mapping):
        raise UsageError(f"{path}: {TABLE!r} is no table; write [{TABLE}] on a line, and options below it")
    known = {long_name(parameter): parameter for parameter in options_of(parameters)}
    for key in table:
        if key not in known:
            raise UsageError(f"{path}: unknown key {key!r} in [{TABLE}]; {closest(key, known)}")
    return {known[key].name: _value(path, key, value, known[key]) for key, value in table.items()}


def options_of(parameters: Sequence[Any]) -> list[Any]:
    """Of a command's parameters those that a config file may set."""
    return [
        parameter
        for parameter in parameters
        if parameter.param_type_name == "option" and parameter.name not in ("config", "help")
    ]


def long_name(parameter: Any) -> str:  # noqa: ANN401  # Typer's Click is vendored and has no public types
    """An option's key in the file: its long name without the dashes."""
    return str(next(name for name in parameter.opts if name.startswith("--"))).removeprefix("--")


def _value(path: Path, key: str, value: object, parameter: Any) -> object:  # noqa: ANN401  # as above
    """The value as the command line would give it. Raises UsageError."""
    if not parameter.multiple:
        return _single(path, key, value, parameter)
    if not isinstance(value, list):
        raise UsageError(f'{path}: {key} is {_shown(value)}; it may be given several times, write {key} = ["…"]')
    return [_single(path, key, item, parameter) for item in value]


def _single(path: Path, key: str, value: object, parameter: Any) -> object:  # noqa: ANN401  # as above
    kind = kind_of(parameter)
    wanted = _TYPES.get(kind, (str,))
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        raise UsageError(f"{path}: {key} is {_shown(value)}; write {_WORDS.get(kind, 'a text in quotes')}")
    if issubclass(kind, Enum) and value not in (choices := [str(choice.value) for choice in kind]):
        raise UsageError(f"{path}: {key} is {value!r}; {closest(str(value), choices)}")
    low, high = parameter.min, parameter.max
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{path}: {key} is {value}; write {_WORDS[float]}")
    if isinstance(value, (int, float)) and not ((low is None or value >= low) and (high is None or value <= high)):
        least, most = (f"from {low:g}" if low is not None else ""), (f"to {high:g}" if high is not None else "")
        raise UsageError(f"{path}: {key} is {value}; write {_WORDS[kind]} {f'{least} {most}'.strip()}")
    return value


def kind_of(parameter: Any) -> type:  # noqa: ANN401  # as above
    """What an option takes: int, float, bool, a kind of Enum, else str."""
    kind = parameter.type_descriptor.annotation
    return kind if kind in _TYPES or (isinstance(kind, type) and issubclass(kind, Enum)) else str


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def load_config(context: typer.Context, given: str | None) -> str | None:
    """The path of the config file in force, whose values become the command's defaults. Raises UsageError.

    The file holds the options of `ctxrel run`; a command that shares some of them takes those.
    """
    path = _found(context.params.get("inputs") or []) if given is None else given
    if path is None:
        return None
    root: Any = context.find_root().command
    found = read_config(Path(path), root.commands[TABLE].params)
    if given is None and path != CONFIG:
        _refuse_endpoint(path, found)
    own = {parameter.name for parameter in context.command.params}
    context.default_map = {name: value for name, value in found.items() if name in own}
    return path


def _found(inputs: Sequence[str]) -> str | None:
    """The config file of the current folder, else the one beside the logs if they are all of one folder."""
    beside = {path if path.is_dir() else path.parent for path in map(Path, inputs)}
    folders = [Path(), *(beside if len(beside) == 1 else ())]
    return next((str(folder / CONFIG) for folder in folders if (folder / CONFIG).is_file()), None)


def _refuse_endpoint(path: str, found: Mapping[str, object]) -> None:
    """Raise UsageError where a file that came with a log says where records and key are sent."""
    if named := [name for name in _ENDPOINT if name in found]:
        raise UsageError(
            f"{path}: {named[0].replace('_', '-')} is not read from beside a log, which may be another's; "
            f"to trust the file give --config {shlex.quote(path)}"
        )

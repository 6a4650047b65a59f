"""`ctxrel init`: a config file to edit."""

import json
import textwrap
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ...evaluators.errors import OutputError, UsageError
from ..console import write_error
from .config import CONFIG, TABLE, kind_of, long_name, options_of

EPILOG = "Example: ctxrel init"
_HEAD = f"""\
# What `ctxrel run` does in this folder. The command line wins; options that stand behind a # are not set.
# Keys of endpoints are no options: they stay in the environment.

[{TABLE}]
"""


def init(
    context: typer.Context,
    *,
    force: Annotated[bool, typer.Option("--force", help=f"Replace a {CONFIG} that is there.")] = False,
) -> None:
    """Write a ctxrel.toml with all options of ctxrel run, to edit.

    Each has its default beside it, and what it means.
    """
    root: Any = context.find_root().command
    path = Path(CONFIG)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(config_text(root.commands["run"].params))
    except FileExistsError:
        raise UsageError(f"{CONFIG!r} is there already; replace it with --force") from None
    except OSError as error:
        raise OutputError(f"cannot write {CONFIG!r}: {error.strerror}") from None
    write_error(f"written: {CONFIG}")


def config_text(parameters: list[Any]) -> str:
    """The file, with each option behind a #."""
    return _HEAD + "".join(map(_entry, options_of(parameters)))


def _entry(parameter: Any) -> str:  # noqa: ANN401  # Typer's Click is vendored and has no public types
    told = parameter.default is not None or "by default" in parameter.help
    none = "" if told else " Not set by default."
    meaning = textwrap.wrap(f"{parameter.help}{none}", 117, initial_indent="# ", subsequent_indent="# ")
    return "\n" + "\n".join(meaning) + f"\n# {long_name(parameter)} = {_default(parameter)}\n"


def _default(parameter: Any) -> str:  # noqa: ANN401  # as above
    """The default as TOML; where there is none, what stands for a value."""
    default = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    if default is None:
        kind = kind_of(parameter)
        if kind in (int, float):
            return str(parameter.metavar)
        if issubclass(kind, Enum):
            return json.dumps(next(iter(kind)).value)
        default = [parameter.metavar] if parameter.multiple else parameter.metavar
    return json.dumps(default, ensure_ascii=False)

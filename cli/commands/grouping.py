"""Options that several commands take together: a dataclass in Python, and options one by one on the command line."""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer reads it: each parameter that is a dataclass gives way to the dataclass's fields."""
    parameters: list[Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    hints = get_type_hints(command, include_extras=True)
    for parameter in signature(command).parameters.values():
        kind = hints[parameter.name]
        if is_dataclass(kind) and isinstance(kind, type):
            options = [*_options_of(kind)]
            groups[parameter.name] = kind, [option.name for option in options]
            parameters += options
        else:
            parameters.append(parameter.replace(annotation=kind))

    options_alone = Signature(parameters)

    def ungrouped(*positional: Any, **named: Any) -> None:  # noqa: ANN401  # options of all types
        bound = options_alone.bind(*positional, **named)
        bound.apply_defaults()
        values = bound.arguments
        made = {
            name: kind(**{option: values.pop(option) for option in options}) for name, (kind, options) in groups.items()
        }
        command(**values, **made)

    ungrouped.__name__, ungrouped.__doc__ = command.__name__, command.__doc__
    ungrouped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    ungrouped.__signature__ = options_alone  # type: ignore[attr-defined]  # what `inspect` asks for
    return ungrouped


def _options_of(group: type) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for each in fields(group):
        default = Parameter.empty if each.default is MISSING else each.default
        yield Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[each.name])

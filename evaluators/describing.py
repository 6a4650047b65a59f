"""Evaluators for Python written down as plain data, and read again."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from .component import Component
from .errors import UsageError


def describe(component: Component, **parameters: object) -> dict[str, Any]:
    """The type and what its constructor was given. Raises UsageError where there are objects among it."""
    options = {name: value for name, value in component.options.items() if value is not None}
    for name in ("judge", "memory"):
        if name in options:
            raise UsageError(
                f"an evaluator with a {name} object cannot be written down; give model and base_url instead"
            )
    common = {"progress_bar": component.progress_bar, "raise_on_failure": component.raise_on_failure}
    written = {"type": _type_name(type(component)), "init_parameters": {**parameters, **common, **options}}
    return deepcopy(written)


def described(kind: type[Component], data: Mapping[str, Any], *, required: Sequence[str] = ()) -> dict[str, Any]:
    """What the constructor of `kind` is to be given. Raises UsageError for a description that is none of it."""
    written = data.get("type") if isinstance(data, Mapping) else data
    if written != _type_name(kind):
        raise UsageError(f"{written!r} is not {_type_name(kind)!r}")
    parameters = deepcopy(dict(data.get("init_parameters", {})))
    for name in required:
        if name not in parameters:
            raise UsageError(f"the description of {kind.__name__} lacks {name!r}")
    return parameters


def _type_name(kind: type[Component]) -> str:
    """Where the class is to be imported from."""
    return f"{kind.home}.{kind.__name__}"

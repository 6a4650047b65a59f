"""What the command line and the ini file of pytest say of the judge."""

from pathlib import Path
from typing import Any

import pytest

from ...evaluators.judges.options import JudgeOptions, check_options
from ..commands.options import parse_parameters
from ..runs.folder import DEFAULT_STORE
from .plugin import SETTINGS


def judge_options(config: pytest.Config) -> JudgeOptions:
    """What was set; everything else is as usual. Raises UsageError."""
    found = {name: _setting(config, name) for name in SETTINGS if name != "store"}
    options: Any = {name: value for name, value in found.items() if value is not None}
    options["parameters"] = parse_parameters(options.pop("param", []))
    given: JudgeOptions = options
    check_options(given)
    return given


def store_path(config: pytest.Config) -> Path | None:
    """The file that was named, else one in pytest's cache; None where pytest keeps no cache."""
    named: str | None = _setting(config, "store")
    if named:
        return config.rootpath / named
    cache: pytest.Cache | None = getattr(config, "cache", None)
    return cache.mkdir("ctxrel") / DEFAULT_STORE if cache else None


def _setting(config: pytest.Config, name: str) -> Any:  # noqa: ANN401  # of whatever type it is
    option = config.getoption(f"ctxrel_{name}")
    return config.getini(f"ctxrel_{name}") if option is None else option

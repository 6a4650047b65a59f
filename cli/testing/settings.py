"""The judge's options out of what pytest was told."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ...evaluators.judges.options import JudgeOptions, check_options
from ..commands.options import parse_parameters
from ..runs.folder import DEFAULT_STORE

STORE = "store"


def judge_options(settings: Mapping[str, Any]) -> JudgeOptions:
    """Those that were set; everything else is as usual. Raises UsageError."""
    options: Any = {name: value for name, value in settings.items() if name != STORE and value is not None}
    options["parameters"] = parse_parameters(options.pop("param", []))
    given: JudgeOptions = options
    check_options(given)
    return given


def store_path(settings: Mapping[str, Any], config: pytest.Config) -> Path | None:
    """The file that was named, else one in pytest's cache; None where pytest keeps no cache."""
    named: str | None = settings[STORE]
    if named:
        return config.rootpath / named
    cache: pytest.Cache | None = getattr(config, "cache", None)
    return cache.mkdir("ctxrel") / DEFAULT_STORE if cache else None

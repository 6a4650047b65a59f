"""A real tokenizer, for what is checked against one: o200k_base, out of a wheel and without a download."""

import warnings
from functools import lru_cache
from importlib.metadata import version
from typing import Any

NAME = f"o200k_base of bpe-openai {version('bpe-openai')}"


@lru_cache(maxsize=1)
def _encoding() -> Any:  # noqa: ANN401  # the package has no types
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it opens its vocabulary in an old way
        import bpe_openai  # noqa: PLC0415

        return bpe_openai.get_encoding("o200k_base")


def count_tokens(text: str) -> int:
    """The tokens of a text."""
    return len(_encoding().encode_ordinary(text))

"""How many tokens a text is likely to have, without a tokenizer: by the scripts that it is written in.

The rates were fitted to o200k_base (the vocabulary of gpt-4o, gpt-4.1 and gpt-5) by `tests/benchmarks/token_rates.py`.
"""

from weakref import WeakKeyDictionary

import orjson

from ..prompt import Prompt


def _span(first: int, last: int) -> bytes:
    return bytes(range(first, last + 1))


_ASCII = (
    (_span(ord("a"), ord("z")), 0.18),
    (_span(ord("A"), ord("Z")), 0.16),
    (_span(ord("0"), ord("9")), 0.76),
    (b" \t\n\r", 0.13),
    (bytes(byte for byte in range(33, 127) if not chr(byte).isalnum()), 0.66),
)
_OTHERS = (
    (_span(0xC2, 0xCD), 1.27),  # Latin letters with marks
    (_span(0xCE, 0xCF), 0.50),  # Greek
    (_span(0xD0, 0xD3), 0.25),  # Cyrillic
    (_span(0xD6, 0xD7), 0.45),  # Hebrew
    (_span(0xD8, 0xDB), 0.33),  # Arabic
    (b"\xe0", 0.35),  # Devanagari, other scripts of India, Thai
    (b"\xe1", 0.90),  # Georgian, Khmer, letters of Vietnamese
    (b"\xe2", 0.71),  # typographic signs
    (b"\xe3", 0.77),  # kana
    (_span(0xE4, 0xE9), 0.81),  # Han
    (_span(0xEA, 0xED), 0.74),  # Hangul
    (b"\xee\xef", 0.80),  # full-width forms
    (_span(0xF0, 0xF4), 2.00),  # emoji, rare Han
)
"""Bytes that begin a character in UTF-8, and tokens for each character."""
_EVERY = bytes(range(256))
_MESSAGES = 10
"""Tokens that frame the two messages of a request."""
ERROR = 0.15
"""The share by which an estimate may be off; see docs/cost.md for what was measured."""


def _counted(classes: tuple[tuple[bytes, float], ...]) -> list[tuple[bytes, float]]:
    """For each class the bytes to delete, so that its own are left over."""
    return [(bytes(set(_EVERY) - set(members)), rate) for members, rate in classes]


_ASCII_RATES, _OTHER_RATES = _counted(_ASCII), _counted(_OTHERS)


def likely_tokens(text: str) -> float:
    """An estimate that is as often too high as too low."""
    data = text.encode(errors="surrogatepass")
    rates = _ASCII_RATES if len(data) == len(text) else [*_ASCII_RATES, *_OTHER_RATES]
    return sum(len(data.translate(None, others)) * rate for others, rate in rates)


def frame_tokens(prompt: Prompt) -> float:
    """Likely tokens of all that is the same for every record: instructions, examples, the reply's schema, roles."""
    if prompt not in _FRAMES:
        schema = orjson.dumps(prompt.schema).decode() if prompt.schema else ""
        _FRAMES[prompt] = likely_tokens(prompt.system) + likely_tokens(schema) + _MESSAGES
    return _FRAMES[prompt]


_FRAMES: WeakKeyDictionary[Prompt, float] = WeakKeyDictionary()

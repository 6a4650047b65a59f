"""How many tokens a text may come to, without a tokenizer: none is at hand for most models."""

BYTES_PER_TOKEN = 3
"""Bytes of UTF-8 that make a token, rather too few: English takes some 4.4, Korean and Chinese some 3 to 5 with the
vocabularies of 2024 and later; texts full of numbers and code come close to 3."""


def most_tokens(text: str) -> int:
    """An estimate that is rather too high."""
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)

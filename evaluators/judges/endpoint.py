"""Where the judge is, and with what it is asked."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ..errors import UsageError

DEFAULT_MODEL = "gpt-5-mini"
DEFAULT_BASE_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where the judge is, and with what it is asked."""

    model: str = DEFAULT_MODEL
    base_url: str = DEFAULT_BASE_URL
    api_key: str = field(default="", repr=False)
    """Empty where a loopback endpoint needs none."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """Request parameters that win over the evaluator's; None leaves one out."""
    timeout: float = 60.0
    """Seconds for one attempt, from sending to the last byte."""

    @property
    def host(self) -> str:
        """Host and port."""
        return urlsplit(self.base_url).netloc

    @property
    def shown_url(self) -> str:
        """The base URL without credentials and query, for messages and files."""
        return show_url(self.base_url)


def show_url(url: str) -> str:
    """A URL without the parts that may hold secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def find_endpoint(
    *, model: str, base_url: str | None, api_key_env: str, parameters: Mapping[str, object], timeout: float
) -> Endpoint:
    """The endpoint from options and environment. Raises UsageError for a URL or key that cannot work."""
    url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).strip()
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"{show_url(url)!r} is no base URL; write it like {DEFAULT_BASE_URL} or http://localhost:11434/v1"
        )
    if "@" in parts.netloc:
        raise UsageError("the base URL holds a user name or password; name a variable with the key by --api-key-env")
    key = os.environ.get(api_key_env, "").strip()
    if not key and not _is_loopback(parts.hostname):
        raise UsageError(
            f"no API key for {parts.hostname}: set the environment variable {api_key_env}, "
            "name another with --api-key-env, or try --model offline, which needs none"
        )
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"the API key in {api_key_env} holds characters no key has; copy it again")
    return Endpoint(model=model, base_url=url, api_key=key, parameters=parameters, timeout=timeout)


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")

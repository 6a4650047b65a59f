"""Where the judge is, and with what it is asked."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from ..errors import UsageError

DEFAULT_MODEL = "gpt-6-luna"
DEFAULT_BASE_URL = "https://api.openai.com/v1"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Api(StrEnum):
    """Which of an endpoint's services is asked."""

    CHAT = "chat"
    DECISIONS = "decisions"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A model at a base URL."""

    model: str = DEFAULT_MODEL
    base_url: str = DEFAULT_BASE_URL
    """Holds no credentials and no query."""
    api_key: str = field(default="", repr=False)
    """Empty where a loopback endpoint needs none."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """Request parameters that win over the evaluator's; None leaves one out."""
    timeout: float = 60.0
    """Seconds for one attempt, from sending to the last byte."""
    proxy: str | None = field(default=None, repr=False)
    """Through which requests go; it may hold credentials."""
    identity: str = ""
    """Stands for host and path in the store where they are chance."""

    @property
    def host(self) -> str:
        """Host and port, in small letters."""
        return urlsplit(self.base_url).netloc.lower()

    @property
    def address(self) -> str:
        """Host and path: gateways tell their backends apart by the path."""
        return self.identity or self.host + urlsplit(self.base_url).path.rstrip("/")


def find_endpoint(
    *,
    model: str,
    base_url: str | None,
    api_key_env: str,
    parameters: Mapping[str, object],
    timeout: float,
    insecure: bool = False,
    sending: bool = True,
) -> Endpoint:
    """The endpoint from options and environment. Raises UsageError for a URL or key that cannot work.

    `insecure` allows plain http, and no key, to a host that is not this machine; so it is where nothing is to be sent.
    """
    insecure = insecure or not sending
    url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).strip()
    host = _check_url(url)
    if not _VARIABLE.fullmatch(api_key_env):
        raise UsageError("--api-key-env takes the name of a variable that holds the key, not the key itself")
    key = os.environ.get(api_key_env, "").strip()
    if urlsplit(url).scheme == "http" and not is_loopback(host) and not insecure:
        raise UsageError(
            f"records{' and the key' if key else ''} would go to {host} in plain text; write https:, "
            "or add --insecure if everything in between is yours"
        )
    if not key and not is_loopback(host) and not insecure:
        raise UsageError(
            f"no API key for {host}: set the environment variable {api_key_env}, "
            "name another with --api-key-env, or try --model offline, which needs none"
        )
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"the API key in {api_key_env} holds characters no key has; copy it again")
    proxy = find_proxy(url)
    return Endpoint(model=model, base_url=url, api_key=key, parameters=parameters, timeout=timeout, proxy=proxy)


def find_proxy(url: str) -> str | None:
    """The proxy that the environment names for a URL; none for this machine. Raises UsageError for an unusable one."""
    parts = urlsplit(url)
    proxies = getproxies()
    kind = parts.scheme if proxies.get(parts.scheme) else "all"
    proxy = proxies.get(kind)
    if not proxy or is_loopback(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    there = _split(proxy)
    if there is None or there.scheme not in ("http", "https") or not _is_host(there.hostname):
        raise UsageError(f"the proxy in {kind.upper()}_PROXY is no http:// or https:// URL; change it or unset it")
    return proxy


def _check_url(url: str) -> str:
    """The host of a base URL. Raises UsageError, which shows nothing that may be a secret."""
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not _is_host(parts.hostname) or not url.isprintable():
        shown = "the base URL" if "@" in url or "?" in url else repr(url)
        raise UsageError(f"{shown} is no base URL; write it like {DEFAULT_BASE_URL} or http://localhost:11434/v1")
    if "@" in parts.netloc:
        raise UsageError("the base URL holds a user name or password; name a variable with the key by --api-key-env")
    if parts.query or parts.fragment:
        raise UsageError(
            "the base URL holds a query ('?'), which cannot be kept; use the endpoint's /v1 form without it"
        )
    return str(parts.hostname)


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # a port or an IPv6 address that is none
        return None
    return None if port == 0 else parts


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_host(host: str | None) -> bool:
    """Whether a name can be looked up at all."""
    try:
        return bool(host) and bool(str(host).encode("idna"))
    except UnicodeError:
        return False

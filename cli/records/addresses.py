"""Addresses of remote logs, and how they are shown: without what is secret in them."""

import re

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_USER = re.compile(r"(?<=://)[^/\s'\"?#]*@")
_WEB_QUERY = re.compile(r"(https?://[^\s'\"?#]*)[?#][^\s'\"]*", re.IGNORECASE)
_QUERY = re.compile(r"(://[^\s'\"?]*)\?[^\s'\"/]*=[^\s'\"]*")
WEB = ("http", "https")


def is_remote(name: str) -> bool:
    """Whether a text is an address like `s3://bucket/log.jsonl`."""
    return bool(_ADDRESS.match(name))


def protocol_of(address: str) -> str:
    """`s3` of `s3://bucket/log.jsonl`."""
    return address.partition("://")[0].lower()


def shown(text: str) -> str:
    """A text whose addresses are cut before user and password, and after the path, where signatures stand."""
    return _QUERY.sub(r"\1", _WEB_QUERY.sub(r"\1", _USER.sub("", text)))

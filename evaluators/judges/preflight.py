"""What is learnt about the model before the first record is sent."""

import asyncio
import datetime as dt
import re
from collections.abc import Callable
from urllib.parse import quote

import httpx2
import openai

from ..errors import EndpointError, EndpointUnreachable, Failure, FailureKind, ModelUnknown
from ..jsontext import NotJSON, loads
from .endpoint import Endpoint
from .translate import FOREIGN, translate, words_of

_NOTICE_DAYS = 30
_TRIES = 3
_SHOWN = 5


async def check_model(client: openai.AsyncOpenAI, endpoint: Endpoint, notify: Callable[[str], None]) -> None:
    """Tell of a shutdown within 30 days; raise EndpointError where the model, key or endpoint cannot work.

    An endpoint that knows no `/models` is fine.
    """
    model = await _get(client, endpoint, f"/models/{quote(endpoint.model, safe='')}")
    if isinstance(model, dict) and model.get("id") is not None:
        if notice := shutdown_notice(endpoint.model, model.get("shutdown_date"), today=dt.datetime.now(dt.UTC).date()):
            notify(notice)
        return
    names = _names(await _get(client, endpoint, "/models"))
    # Azure is asked for deployments and lists models: there the first request decides.
    if names and endpoint.model not in names and not endpoint.host.endswith(".azure.com"):
        raise unknown_model(endpoint, names)


async def model_gone(client: openai.AsyncOpenAI, endpoint: Endpoint) -> ModelUnknown:
    """The error for a model that the endpoint did not take, with what it lists instead."""
    try:
        return unknown_model(endpoint, _names(await _get(client, endpoint, "/models")))
    except EndpointError:
        return unknown_model(endpoint, [])


def unknown_model(endpoint: Endpoint, names: list[str]) -> ModelUnknown:
    """The error for a model that the endpoint does not serve, with the nearest of those it lists."""
    near = ", ".join(nearest_models(endpoint.model, names))
    return ModelUnknown(
        f"the endpoint {endpoint.shown_url} does not serve the model {endpoint.model!r}; "
        f"choose another with --model{near and f', for example {near}'}"
    )


def nearest_models(model: str, names: list[str]) -> list[str]:
    """Up to five of `names`, newest first as the endpoint lists them, that could succeed `model`.

    Those that share most words come first: for gpt-5-mini, gpt-5.4-mini before gpt-5.4 before tts-2.
    """
    words = _words(model)
    return sorted(names, key=lambda name: -len(words & _words(name)))[:_SHOWN]


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z]+", name.lower()))


def shutdown_notice(model: str, date: object, *, today: dt.date) -> str | None:
    """A sentence where a shutdown within 30 days (or in the past) is announced, else None."""
    try:
        day = dt.date.fromisoformat(str(date)[:10])
    except ValueError:
        return None
    days = (day - today).days
    if days > _NOTICE_DAYS:
        return None
    when = f"will be shut down on {day} (in {days} days)" if days >= 0 else f"was to be shut down on {day}"
    return f"the model {model} {when}; choose its successor with --model in time"


async def _get(client: openai.AsyncOpenAI, endpoint: Endpoint, path: str) -> object:
    """The JSON at a path, None where the endpoint has none; only what ends a run is raised."""
    for attempt in range(1, _TRIES + 1):
        try:
            async with asyncio.timeout(endpoint.timeout):
                response = await client.get(path, cast_to=httpx2.Response)
            return loads(response.content)
        except NotJSON:
            return None
        except FOREIGN as error:
            if isinstance(error, openai.AuthenticationError) and "scope" not in words_of(error):
                raise translate(
                    error, model=endpoint.model, url=endpoint.shown_url, timeout=endpoint.timeout
                ) from error
            meaning = translate(error, model=endpoint.model, url=endpoint.shown_url, timeout=endpoint.timeout)
            if not isinstance(meaning, Failure) or meaning.kind not in (FailureKind.CONNECTION, FailureKind.TIMEOUT):
                return None
            if attempt == _TRIES:
                raise EndpointUnreachable(
                    f"{meaning.message}; check that the server runs and that --base-url is right"
                ) from error
            await asyncio.sleep(attempt / 2)
    return None


def _names(listing: object) -> list[str]:
    """Ids of a `/models` listing, newest first where it says when they were created."""
    data = listing.get("data") if isinstance(listing, dict) else None
    models = [item for item in data or [] if isinstance(item, dict) and isinstance(item.get("id"), str)]
    models.sort(key=lambda item: item["created"] if type(item.get("created")) is int else 0, reverse=True)
    return [item["id"] for item in models]

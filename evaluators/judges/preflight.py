"""What is learnt about the model before the first record is sent."""

import asyncio
import datetime as dt
import re
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import quote

from ..errors import EndpointUnreachable, Failure, FailureKind, ModelUnknown
from ..jsontext import NotJSON, loads
from .endpoint import Endpoint
from .refusal import Refusal
from .transport import Response, Transport

_NOTICE_DAYS = 30
_TRIES = 3
_QUICK_SECONDS = 5.0
_SHOWN = 5


class _Answer(NamedTuple):
    """What `/models` had to say."""

    value: object = None
    """The JSON, None where there is none."""
    refuses_model: bool = False
    """Whether the answer was, by its code, that there is no such model."""


async def check_model(transport: Transport, endpoint: Endpoint, notify: Callable[[str], None]) -> None:
    """Tell of a shutdown within 30 days; raise EndpointError where the model, key or endpoint cannot work.

    An endpoint that knows no `/models` is fine. One that lists other models and does not say that there is no such
    one may serve it all the same (an alias, a deployment): there the first request, which goes alone, decides.
    """
    answer = await _get(transport, endpoint, f"/models/{quote(endpoint.model, safe='')}")
    model = answer.value
    if isinstance(model, dict) and model.get("id") is not None:
        today = dt.datetime.now(dt.UTC).date()
        if notice := shutdown_notice(endpoint.model, model.get("shutdown_date"), today=today):
            notify(notice)
    elif answer.refuses_model:
        names = listed_models((await _get(transport, endpoint, "/models")).value)
        if names and endpoint.model not in names and not endpoint.host.endswith(".azure.com"):
            raise unknown_model(endpoint, names)


async def with_successors(endpoint: Endpoint) -> ModelUnknown:
    """The error for a model that the endpoint did not take, with what it lists instead, if it says so quickly."""
    transport = Transport(replace(endpoint, timeout=min(endpoint.timeout, _QUICK_SECONDS)))
    try:
        response = await transport.get("/models")
        return unknown_model(endpoint, listed_models(_json(response)) if response.good else [])
    except Failure:
        return unknown_model(endpoint, [])
    finally:
        await transport.close()


def unknown_model(endpoint: Endpoint, names: list[str]) -> ModelUnknown:
    """The error for a model that the endpoint does not serve, with the nearest of those it lists."""
    near = ", ".join(nearest_models(endpoint.model, [name for name in names if name != endpoint.model]))
    return ModelUnknown(
        f"the endpoint {endpoint.base_url} does not serve the model {endpoint.model!r}; "
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


async def _get(transport: Transport, endpoint: Endpoint, path: str) -> _Answer:
    """What stands at a path; only what ends a run is raised."""
    for attempt in range(1, _TRIES + 1):
        try:
            response = await transport.get(path)
        except Failure as failure:
            if failure.kind is FailureKind.SERVER_ERROR:
                return _Answer()
            if attempt == _TRIES:
                raise EndpointUnreachable(
                    f"{failure.message}; check that the server runs and that --base-url is right"
                ) from failure
            await asyncio.sleep(attempt / 2)
        else:
            return _Answer(_json(response)) if response.good else _refused(Refusal(response), endpoint)
    return _Answer()


def _json(response: Response) -> object:
    try:
        return loads(response.body)
    except NotJSON:
        return None


def _refused(refusal: Refusal, endpoint: Endpoint) -> _Answer:
    """A key without the right to see models is fine; a key that is none is not."""
    if refusal.status == HTTPStatus.UNAUTHORIZED and "scope" not in refusal.words:
        raise refusal.meaning(endpoint)
    return _Answer(refuses_model=refusal.get("code") == "model_not_found")


def listed_models(listing: object) -> list[str]:
    """Ids of a `/models` listing, newest first where it says when they were created."""
    data = listing.get("data") if isinstance(listing, dict) else None
    items = data if isinstance(data, list) else []
    models = [item for item in items if isinstance(item, dict) and isinstance(item.get("id"), str)]
    models.sort(key=lambda item: item["created"] if type(item.get("created")) is int else 0, reverse=True)
    return [item["id"] for item in models]

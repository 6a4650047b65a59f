"""The endpoint: its key, the way to it, whether it answers, what it serves and in which form."""

import datetime as dt
from collections.abc import Sequence
from urllib.parse import urlsplit

from ...evaluators.costs.budget import Caps
from ...evaluators.errors import EndpointError, Failure, RunError
from ...evaluators.jsontext import NotJSON, loads
from ...evaluators.judges.endpoint import Endpoint
from ...evaluators.judges.openai_chat import ChatJudge
from ...evaluators.judges.preflight import check_model, listed_models, shutdown_notice
from ...evaluators.judges.refusal import Refusal
from ...evaluators.judges.transport import Response, Transport
from ...evaluators.prompt import Prompt, Request
from ...evaluators.replies import read_object
from ..runs.pricing import tariff_for
from .finding import Finding, Status, failed, warned

_TINY = Prompt(
    name="doctor",
    system='Answer with the JSON object {"well": true} and nothing else.',
    schema={
        "type": "object",
        "properties": {"well": {"type": "boolean"}},
        "required": ["well"],
        "additionalProperties": False,
    },
    parameters={"max_completion_tokens": 2048},  # reasoning counts
)


def describe_endpoint(endpoint: Endpoint, *, source: str, api_key_env: str) -> list[Finding]:
    """What is in force before anything is sent; `source` is where the base URL comes from. The key is not shown."""
    key = f"{api_key_env} is set" if endpoint.api_key else f"{api_key_env} is not set, and not asked for"
    proxy = urlsplit(endpoint.proxy or "")
    return [
        Finding(name="key", found=key),
        Finding(name="base url", found=f"{endpoint.base_url} ({source})"),
        Finding(name="proxy", found=proxy.netloc.rpartition("@")[2] or "none for this endpoint"),
    ]


async def look_at_endpoint(endpoint: Endpoint) -> list[Finding]:
    """Whether the endpoint answers, and whether it serves the model. Nothing but `GET /models` is sent."""
    transport = Transport(endpoint)
    try:
        response = await transport.get("/models")
        names = _listed(response) if response.good else []
        finding = _answer(response, endpoint, names)
        if finding.status is Status.FAIL:
            return [finding]
        return [finding, await _model(transport, endpoint, listed=endpoint.model in names)]
    except Failure as failure:
        return [failed("endpoint", failure.message, "check that the server runs and that --base-url is right")]
    finally:
        await transport.close()


def _answer(response: Response, endpoint: Endpoint, names: Sequence[str]) -> Finding:
    if response.good:
        if not names:
            return warned("endpoint", "answers, but lists no models", "check --base-url, it usually ends in /v1")
        return Finding(name="endpoint", found=f"answers, and lists {len(names):,} models")
    refusal = Refusal(response)
    meaning = refusal.meaning(endpoint)
    if response.status == 404:  # noqa: PLR2004  # HTTP's own number
        return warned(
            "endpoint", "answers, but knows no /models (HTTP 404)", "check --base-url, it usually ends in /v1; or --ask"
        )
    if isinstance(meaning, EndpointError) and not (response.status == 401 and "scope" in refusal.words):  # noqa: PLR2004
        return failed("endpoint", str(meaning))
    if isinstance(meaning, Failure) and response.status >= 500:  # noqa: PLR2004
        return failed("endpoint", meaning.message, "run this again later")
    return warned("endpoint", f"answers, but does not list its models (HTTP {response.status})", "try --ask")


async def _model(transport: Transport, endpoint: Endpoint, *, listed: bool) -> Finding:
    """Whether the model is served."""
    notices: list[str] = []
    try:
        await check_model(transport, endpoint, notices.append)
    except RunError as error:
        return failed("model", str(error))
    if notices:
        return warned("model", notices[0])
    if not listed:
        return warned(
            "model", f"the endpoint does not list {endpoint.model}", "it may serve it all the same; try --ask"
        )
    price = tariff_for(endpoint, None, Caps()).price
    return served_model(endpoint.model, price.shutdown if price else None, today=dt.datetime.now(dt.UTC).date())


def served_model(model: str, shutdown: dt.date | None, *, today: dt.date) -> Finding:
    """A model that is served, and until when: `shutdown` is the day by the price list, None where it names none."""
    if shutdown and (notice := shutdown_notice(model, shutdown.isoformat(), today=today)):
        return warned("model", notice)
    until = f"until {shutdown} by what is announced" if shutdown else "and no shutdown is announced"
    return Finding(name="model", found=f"{model} is served, {until}")


def _listed(response: Response) -> list[str]:
    try:
        return listed_models(loads(response.body))
    except NotJSON:
        return []


async def ask_once(judge: ChatJudge) -> Finding:
    """One tiny request, paid for: which response format works, and what a reply takes."""
    try:
        await judge.open()
        reply = await judge.ask(Request(_TINY, "{}"))
        read_object(reply)
    except Failure as failure:
        return failed("request", f"{failure.kind}: {failure.message}", "run this again; if it stays so, see --param")
    except RunError as error:
        return failed("request", str(error))
    finally:
        await judge.close()
    tokens = f"{reply.usage.input_tokens:,} input and {reply.usage.output_tokens:,} output tokens"
    found = f"answered by {reply.model} with response_format {judge.dialect.response_format}; {tokens}"
    changes = judge.dialect.changes()
    return warned("request", found, "; ".join(changes)) if changes else Finding(name="request", found=found)

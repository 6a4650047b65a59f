"""`ctxrel estimate`: what a run would send, take and cost."""

import asyncio
from typing import Annotated, Any

import orjson
import typer

from ...evaluators.costs.forecast import SECONDS
from ...evaluators.costs.price import show_dollars
from ..console import ProgressKind, Reporter, duration, show_table, write_out
from ..runs.estimating import estimate as estimate_run
from ..runs.plan import Plan, RunOptions, plan_run
from . import groups
from . import options as opt
from .grouping import with_groups

EPILOG = "Example: ctxrel estimate sample_data/support_en.jsonl --model gpt-6-luna"
_RANGE = ("low", "likely", "high")
_WORDS = {
    "to_send": "to send",
    "stored": "answered from the store",
    "identical": "the same as earlier ones",
    "not_needed": "not needed",
    "unusable": "impossible for what stands in the log",
}


@with_groups
def estimate(
    inputs: opt.Inputs,
    *,
    output: opt.Output = None,
    evaluator: opt.Evaluators = ["context_relevance"],  # noqa: B006  # typer copies it
    judge: groups.JudgeOptions,
    requests: groups.RequestOptions,
    prices: opt.Prices = None,
    log: groups.LogOptions,
    selection: groups.SelectionOptions,
    store: opt.Store = None,
    max_input_tokens: opt.MaxInputTokens = None,
    explain: opt.Explain = False,
    show: Annotated[bool, typer.Option("--show", help="Show the first request as it would be sent.")] = False,
    json: opt.AsJson = False,
    config: opt.Config = None,
) -> None:
    """Tell what a run would send, take and cost.

    No request is sent, nothing is written, no key is needed.
    """
    reporter = Reporter(ProgressKind.NONE if json else ProgressKind.AUTO)
    options = RunOptions(
        inputs=inputs,
        evaluators=evaluator,
        model=judge.model,
        api=judge.api,
        base_url=judge.base_url,
        api_key_env="OPENAI_API_KEY",
        parameters=requests.parameters(),
        concurrency=requests.concurrency,
        fields=log.parse(),
        output=output,
        store=store,
        raise_on_failure=False,
        timeout=None,
        attempts=1,
        explain=explain,
        max_input_tokens=max_input_tokens,
        rpm=opt.parse_rate("--rpm", requests.rpm),
        tpm=opt.parse_rate("--tpm", requests.tpm),
        prices=prices,
        selection=selection.parse(),
        config=config,
    )
    show_estimate(plan_run(options, reporter, sending=False), reporter, show=show, json=json)


def show_estimate(plan: Plan, reporter: Reporter, *, show: bool = False, json: bool = False) -> None:
    """The estimate of a plan, on standard output."""
    found = asyncio.run(estimate_run(plan, reporter, show=show))
    if json:
        write_out(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    show_table(f"estimate: {found['judge']}", ["", *_RANGE], _rows(found), to_stderr=False)
    for line in _lines(found):
        write_out(line)
    if show and found["request"]:
        write_out("the first request:")
        write_out(orjson.dumps(found["request"], option=orjson.OPT_INDENT_2).decode())


def _rows(found: dict[str, Any]) -> list[list[str]]:
    rows = [[f"{name} tokens", *(f"{found['tokens'][name][key]:,}" for key in _RANGE)] for name in ("input", "output")]
    for key, name in (("cost", "cost"), ("cost_in_batches", "cost in batches")):
        if found[key]:
            rows.append([name, *(show_dollars(found[key][part]) for part in _RANGE)])
    return rows


def _of_cost(share: float | None) -> str:
    return "" if share is None else f", {share:.0%} of the cost"


def _lines(found: dict[str, Any]) -> list[str]:
    requests, shares, price = found["requests"], found["shares"], found["price"]
    lines = [
        f"records: {found['records']:,}",
        "requests: "
        + ", ".join(f"{count:,} {_WORDS[name]}" for name, count in requests.items() if count or name == "to_send"),
        f"time: {duration(found['seconds'])} with {found['in_flight']} in flight and {SECONDS:g} s for an answer",
    ]
    if found["tokens"]["input"]["likely"]:
        lines.append(
            f"worked examples: {shares['examples']:.0%} of the input{_of_cost(shares['examples_of_cost'])}; "
            f"the provider's prompt cache can hold {shares['cacheable']:.0%} of the input"
        )
    if found["assumed"]:
        lines.append(f"length of replies: assumed for {', '.join(found['assumed'])}, the store knows too few of them")
    if price is None:
        lines.append("price: not known; name a file with prices by --prices")
    elif price["input"] or price["output"]:
        on = f" on {price['checked']}" if price["checked"] else ""
        lines.append(
            f"price: ${price['input']:g} in, ${price['cached_input']:g} cached, ${price['output']:g} out for a million "
            f"tokens of {price['model']} ({price['source']}{on})"
        )
    return lines

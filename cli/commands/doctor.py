"""`ctxrel doctor`: what a run would stand on."""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from ...evaluators.errors import UsageError
from ...evaluators.judges.endpoint import DEFAULT_MODEL, Endpoint, find_endpoint
from ...evaluators.judges.llamacpp import LocalJudge, find_local_model
from ...evaluators.judges.model_file import is_model_file
from ...evaluators.judges.named import NAMED
from ...evaluators.judges.openai_chat import ChatJudge
from ..console import show_table, write_out
from ..health.finding import Finding, Status, failed
from ..health.machine import look_at_folder, look_at_installation, look_at_terminal
from ..health.service import ask_once, describe_endpoint, look_at_endpoint
from ..health.storage import look_at_store
from ..runs.folder import DEFAULT_STORE
from ..runs.plan import DEFAULT_TIMEOUT
from . import options as opt

EPILOG = "Example: ctxrel doctor --model offline"


def doctor(
    *,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where a run would write, or the folder of one.")
    ] = Path(),
    model: opt.Model = DEFAULT_MODEL,
    base_url: opt.BaseUrl = None,
    api_key_env: opt.ApiKeyEnv = "OPENAI_API_KEY",
    param: opt.Parameters = None,
    store: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A store to look at; that of --output by default.")
    ] = None,
    timeout: opt.Timeout = None,
    insecure: opt.Insecure = False,
    ask: Annotated[bool, typer.Option("--ask", help="Send one tiny request, which costs some tokens.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    config: opt.Config = None,
) -> None:
    """Look for what would be in the way of a run.

    Looked at are installation, key, endpoint, model, disk and store. Nothing is changed and, without --ask, nothing is
    asked that costs anything. Exit code 1 if a run cannot work.
    """
    findings = [*look_at_installation(), look_at_terminal()]
    if config:
        findings.append(Finding(name="options", found=config))
    findings += _judge(
        model, base_url, api_key_env, opt.parse_parameters(param or []), timeout=timeout, insecure=insecure, ask=ask
    )
    findings.append(look_at_folder(output))
    if store or (output / DEFAULT_STORE).exists():
        findings.append(look_at_store(store or output / DEFAULT_STORE))
    _show(findings, as_json=json)
    if any(finding.status is Status.FAIL for finding in findings):
        raise typer.Exit(1)


def _judge(
    model: str,
    base_url: str | None,
    api_key_env: str,
    parameters: dict[str, object],
    *,
    timeout: float | None,
    insecure: bool,
    ask: bool,
) -> Iterator[Finding]:
    """What is found of whoever judges."""
    if model in NAMED:
        yield Finding(name="model", found=f"the {model} judge needs no key and no network")
        return
    try:
        if is_model_file(model):
            local = find_local_model(
                model=model, base_url=base_url, parameters=parameters, concurrency=None, timeout=timeout
            )
            yield Finding(name="model", found=local.serving)
            if ask:
                yield asyncio.run(ask_once(LocalJudge(local)))
            return
        endpoint = find_endpoint(
            model=model,
            base_url=base_url,
            api_key_env=api_key_env,
            parameters=parameters,
            timeout=timeout or DEFAULT_TIMEOUT,
            insecure=insecure,
        )
        source = "--base-url" if base_url else "OPENAI_BASE_URL" if os.environ.get("OPENAI_BASE_URL") else "default"
        yield from describe_endpoint(endpoint, source=source, api_key_env=api_key_env)
        yield from asyncio.run(_look(endpoint, ask=ask))
    except UsageError as error:
        yield failed("judge", str(error))


async def _look(endpoint: Endpoint, *, ask: bool) -> list[Finding]:
    findings = await look_at_endpoint(endpoint)
    if ask and all(finding.status is not Status.FAIL for finding in findings):
        findings.append(await ask_once(ChatJudge(endpoint, concurrency=1)))
    return findings


def _show(findings: list[Finding], *, as_json: bool) -> None:
    if as_json:
        worst = max((finding.status for finding in findings), key=list(Status).index)
        write_out(orjson.dumps({"status": worst, "checks": [asdict(finding) for finding in findings]}).decode())
        return
    rows = [
        [finding.status, finding.name, f"{finding.found}; {finding.advice}" if finding.advice else finding.found]
        for finding in findings
    ]
    show_table("", ["", "what", "found"], rows, to_stderr=False)

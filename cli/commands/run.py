"""`ctxrel run`: judge a log."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from ...evaluators.errors import GateNotMet
from ...evaluators.judges.named import NAMED
from ..console import ProgressKind, Reporter, duration, show_table, write_error
from ..reports import figures
from ..reports.files import ReportFiles
from ..runs.engine import results_format
from ..runs.folder import REPORT, outdated_report
from ..runs.job import Ending, carry_out
from ..runs.opinions.telling import NOT_COUNTED, stability_lines
from ..runs.plan import RunOptions, plan_run
from ..runs.pricing import cost_line
from . import groups
from . import options as opt
from .estimate import show_estimate
from .grouping import with_groups

EPILOG = "Example: ctxrel run sample_data/support_en.jsonl --model offline"


@with_groups
def run(
    inputs: opt.Inputs,
    *,
    output: opt.Output = None,
    format_: opt.Format = None,
    evaluator: opt.Evaluators = ["context_relevance"],  # noqa: B006  # typer copies it
    judge: groups.JudgeOptions,
    api_key_env: opt.ApiKeyEnv = "OPENAI_API_KEY",
    requests: groups.RequestOptions,
    caps: groups.CapOptions,
    prices: opt.Prices = None,
    log: groups.LogOptions,
    selection: groups.SelectionOptions,
    carrying: groups.CarryingOptions,
    store: opt.Store = None,
    patience: groups.PatienceOptions,
    batches: groups.BatchOptions,
    opinions: groups.OpinionOptions,
    max_input_tokens: opt.MaxInputTokens = None,
    explain: opt.Explain = False,
    raise_on_failure: opt.RaiseOnFailure = False,
    engines: groups.EngineOptions,
    dry_run: opt.DryRun = False,
    gates: groups.GateOptions,
    report_files: groups.ReportOptions,
    progress: opt.Progress = ProgressKind.AUTO,
    config: opt.Config = None,
) -> None:
    """Judge a log: the relevance of its contexts, or what -e names.

    Replies are kept as they arrive: stop the run however you like, run the same command again, and it goes on.
    """
    engines.check()
    options = RunOptions(
        inputs=inputs,
        evaluators=evaluator,
        model=judge.model,
        api=judge.api,
        base_url=judge.base_url,
        api_key_env=api_key_env,
        parameters=requests.parameters(),
        concurrency=requests.concurrency,
        fields=log.parse(),
        output=output,
        format=results_format(engines.engine, format_),
        store=store,
        raise_on_failure=raise_on_failure,
        timeout=patience.timeout,
        attempts=patience.attempts,
        explain=explain,
        max_input_tokens=max_input_tokens,
        rpm=opt.parse_rate("--rpm", requests.rpm),
        tpm=opt.parse_rate("--tpm", requests.tpm),
        caps=caps.parse(),
        prices=prices,
        grace=patience.grace,
        insecure=patience.insecure,
        batch=batches.batch,
        wait=not batches.no_wait,
        finish_live=batches.finish_live,
        selection=selection.parse(),
        engine=engines.engine,
        ray_address=engines.ray_address,
        ray_workers=engines.ray_workers,
        config=config,
        carrying=carrying.parse(),
        gates=gates.parse(),
        wanted=opinions.parse(),
    )
    reports = report_files.parse()
    reporter = Reporter(progress)
    if config:
        reporter.note(f"options: {config}")
    # Planned outside of the event loop, where Ctrl-C ends the wait for a pipe.
    plan = plan_run(options, reporter, sending=not dry_run)
    if dry_run:
        if options.wanted.any:
            reporter.note(NOT_COUNTED)
        show_estimate(plan, reporter)
        return
    quiet = progress in (ProgressKind.NONE, ProgressKind.JSON)
    _finish(asyncio.run(carry_out(plan, reporter)), reports, quiet=quiet)


def _finish(ending: Ending, reports: ReportFiles, *, quiet: bool) -> None:
    if not quiet:
        show_ending(ending)
    try:
        reports.write(ending.summary)
    finally:
        if ending.error:  # the first error is the one to tell
            raise ending.error
    raise_broken(ending.summary["gates"])


def raise_broken(gates: Sequence[Mapping[str, Any]]) -> None:
    """Raise GateNotMet, with a line for each gate that is not met."""
    if broken := [gate["message"] for gate in gates if not gate["met"]]:
        raise GateNotMet("\nctxrel: ".join(broken))


def show_ending(ending: Ending) -> None:
    """The final table, and where the results are."""
    rows = [
        [
            name,
            figures.number(block["score"]),
            figures.interval(block["interval_95"]),
            f"{block['evaluated']:,}",
            figures.errors(block),
        ]
        for name, block in ending.summary["evaluators"].items()
    ]
    columns = ["evaluator", "score", "95 % interval", "evaluated", "errors"]
    if rows:
        show_table(f"judge: {ending.summary['judge']['description']}", columns, rows, to_stderr=True)
    for line in stability_lines(ending.summary):
        write_error(line)
    if batch := ending.summary["batch"]:
        write_error(f"requests in batches: {batch['requests']:,}; batches: {len(batch['parts']):,}")
    if not ending.summary["results"] and ending.folder:
        return
    requests, seconds = ending.summary["requests"], ending.summary["timings"]["seconds"]
    write_error(
        f"requests: {requests['sent']:,} sent, {requests['reused']:,} answered from the store, "
        f"{requests['not_needed']:,} not needed; {duration(seconds)}"
    )
    judge = ending.summary["judge"]
    if (cost := ending.summary["cost"]) and (judge["model"] not in NAMED or "also" in judge):
        write_error(cost_line(cost))
    if ending.folder:
        write_error(f"results: {ending.folder / ending.summary['results']}")
        if outdated_report(ending.folder, ending.summary["results"]):
            write_error(f"note: {ending.folder / REPORT} is of an earlier run; ctxrel report writes it anew")

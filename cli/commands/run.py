"""`ctxrel run`: judge a log."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from ...evaluators.errors import GateNotMet
from ...evaluators.judges.endpoint import DEFAULT_MODEL, Api
from ...evaluators.judges.offline import OFFLINE
from ..console import ProgressKind, Reporter, duration, show_table, write_error
from ..records.carrying import Carrying
from ..records.paths import FieldPath
from ..reports.files import ReportFiles
from ..runs.engine import Engine, results_format
from ..runs.gates import MAX_ERRORS, GateOn
from ..runs.job import Ending, carry_out
from ..runs.opinions.telling import NOT_COUNTED, stability_lines
from ..runs.opinions.wanted import Wanted
from ..runs.plan import RunOptions, plan_run
from ..runs.pricing import cost_line
from . import options as opt
from .estimate import show_estimate

EPILOG = "Example: ctxrel run sample_data/support_en.jsonl --model offline"


def run(
    inputs: opt.Inputs,
    *,
    output: opt.Output = None,
    format_: opt.Format = None,
    evaluator: opt.Evaluators = ["context_relevance"],  # noqa: B006  # typer copies it
    model: opt.Model = DEFAULT_MODEL,
    api: opt.Service = Api.CHAT,
    base_url: opt.BaseUrl = None,
    api_key_env: opt.ApiKeyEnv = "OPENAI_API_KEY",
    param: opt.Parameters = None,
    concurrency: opt.Concurrency = None,
    rpm: opt.RequestsPerMinute = None,
    tpm: opt.TokensPerMinute = None,
    max_cost: opt.MaxCost = None,
    max_tokens_total: opt.MaxTokensTotal = None,
    prices: opt.Prices = None,
    question_field: opt.QuestionField = None,
    contexts_field: opt.ContextsField = None,
    answer_field: opt.AnswerField = None,
    id_field: opt.IdField = None,
    field: opt.OtherFields = None,
    schema: opt.Schema = None,
    records: opt.Records = None,
    limit: opt.Limit = None,
    where: opt.Where = None,
    sample: opt.Sample = None,
    seed: opt.Seed = 0,
    sample_by: opt.SampleBy = None,
    keep: opt.Kept = None,
    with_input: opt.WithInput = False,
    store: opt.Store = None,
    timeout: opt.Timeout = None,
    attempts: opt.Attempts = 5,
    grace: opt.Grace = 30.0,
    insecure: opt.Insecure = False,
    batch: opt.Batch = False,
    no_wait: opt.NoWait = False,
    finish_live: opt.FinishLive = False,
    repeat: opt.Repeat = 1,
    judge_also: opt.JudgeAlso = None,
    judge_also_base_url: opt.JudgeAlsoBaseUrl = None,
    judge_also_key_env: opt.JudgeAlsoKeyEnv = None,
    on_disagreement: opt.OnDisagreement = False,
    shuffle_contexts: opt.ShuffleContexts = False,
    max_input_tokens: opt.MaxInputTokens = None,
    explain: opt.Explain = False,
    raise_on_failure: opt.RaiseOnFailure = False,
    engine: opt.EngineName = Engine.LOCAL,
    ray_address: opt.RayAddress = None,
    ray_workers: opt.RayWorkers = None,
    dry_run: opt.DryRun = False,
    fail_under: opt.FailUnder = None,
    gate_on: opt.GateOnWhat = GateOn.SCORE,
    max_errors: opt.MaxErrors = MAX_ERRORS,
    junit: opt.Junit = None,
    markdown: opt.Markdown = None,
    metrics_file: opt.MetricsFile = None,
    progress: opt.Progress = ProgressKind.AUTO,
    config: opt.Config = None,
) -> None:
    """Judge a log: are its contexts relevant (by default), its answers faithful, and whatever else evaluators ask.

    Replies are kept as they arrive: stop the run however you like, run the same command again, and it goes on.
    """
    opt.check_ray(engine, ray_address, ray_workers)
    options = RunOptions(
        inputs=inputs,
        evaluators=evaluator,
        model=model,
        api=api,
        base_url=base_url,
        api_key_env=api_key_env,
        parameters=opt.parse_parameters(param or []),
        concurrency=concurrency,
        fields=opt.parse_fields(
            {"question": question_field, "contexts": contexts_field, "answer": answer_field, "id": id_field},
            field or [],
            schema,
            records,
        ),
        output=output,
        format=results_format(engine, format_),
        store=store,
        raise_on_failure=raise_on_failure,
        timeout=timeout,
        attempts=attempts,
        explain=explain,
        max_input_tokens=max_input_tokens,
        rpm=opt.parse_rate("--rpm", rpm),
        tpm=opt.parse_rate("--tpm", tpm),
        caps=opt.parse_caps(max_cost, max_tokens_total),
        prices=prices,
        grace=grace,
        insecure=insecure,
        batch=batch,
        wait=not no_wait,
        finish_live=finish_live,
        selection=opt.parse_selection(limit, where, sample, seed, sample_by),
        engine=engine,
        ray_address=ray_address,
        ray_workers=ray_workers,
        config=config,
        carrying=Carrying(keep=[FieldPath(path) for path in keep or []], whole=with_input),
        gates=opt.parse_gates(fail_under, gate_on, max_errors),
        wanted=Wanted(
            repeat=repeat,
            model=judge_also,
            base_url=judge_also_base_url,
            key_env=judge_also_key_env,
            on_disagreement=on_disagreement,
            shuffle=shuffle_contexts,
        ),
    )
    reports = opt.parse_reports(junit, markdown, metrics_file)
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
        [name, _number(block["score"]), _interval(block["interval_95"]), f"{block['evaluated']:,}", _errors(block)]
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
    if (cost := ending.summary["cost"]) and (judge["model"] != OFFLINE or "also" in judge):
        write_error(cost_line(cost))
    if ending.folder:
        write_error(f"results: {ending.folder / ending.summary['results']}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(value: tuple[float, float] | None) -> str:
    return "-" if value is None else f"{value[0]:.3f} to {value[1]:.3f}"


def _errors(block: dict[str, Any]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in block["errors"].items()) or "none"

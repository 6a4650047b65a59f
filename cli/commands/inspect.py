"""`ctxrel inspect`: what a log holds, and how a run would read it."""

import shutil
from typing import Any

import orjson

from ...evaluators.wording import counted
from ..console import ProgressKind, Reporter, show_table, write_out
from ..records import open_log
from ..records.carrying import Carrying
from ..records.paths import FieldPath
from ..runs.inspection import inspect_log
from ..runs.plan import load_evaluators, needs_of
from . import groups
from . import options as opt
from .grouping import with_groups

EPILOG = "Example: ctxrel inspect sample_data/support_en.jsonl"
_SHOWN_LINES = 6
"""Of a terminal, for each record."""


@with_groups
def inspect(
    inputs: opt.Inputs,
    *,
    evaluator: opt.Evaluators = ["context_relevance"],  # noqa: B006  # typer copies it
    log_options: groups.LogOptions,
    selection: groups.SelectionOptions,
    keep: opt.Kept = None,
    as_json: opt.AsJson = False,
    config: opt.Config = None,
) -> None:
    """Show how a run would read a log, and what is in it.

    That is its format, the fields, three records as the judge would see them, and counts over all. The whole log is
    read. Nothing is sent or written, and no key is needed; what a run would refuse is refused.
    """
    evaluators = load_evaluators(evaluator, explain=False)
    fields = log_options.parse()
    needs = needs_of(evaluators, fields)
    log = open_log(
        inputs,
        fields,
        needs,
        selection=selection.parse(),
        carrying=Carrying(keep=[FieldPath(path) for path in keep or []]),
    )
    reporter = Reporter(ProgressKind.NONE if as_json else ProgressKind.PLAIN)
    if config:
        reporter.note(f"options: {config}")
    for warning in log.doubts():
        reporter.warn(warning)
    log.draw()
    found = inspect_log(log, evaluators[0], needs)
    if as_json:
        write_out(orjson.dumps(found | {"config": config}, option=orjson.OPT_INDENT_2).decode())
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    for file in found["files"]:
        size = "from a pipe" if file["bytes"] is None else counted(file["bytes"], "byte")
        packing = f" in {file['packing']}" if file["packing"] else ""
        fields = ", ".join(f"{role} ← {path}" for role, path in file["fields"].items())
        write_out(
            f"{file['name']}: {file['format']}{packing}, {size}, {counted(file['records'], 'record')}\n  {fields}"
        )
    most = shutil.get_terminal_size().columns * _SHOWN_LINES
    write_out(f"\nas {found['evaluator']} would show them to the judge:")
    for record in found["shown"]:
        text = record["request"] or "(nothing to ask: no context holds text; the score is 0)"
        cut = f"{text[:most]} … ({len(text):,} characters)" if len(text) > most else text
        write_out(f"{record['where']}  id {record['id']}\n  {cut}")
    write_out("")
    show_table("", ["over the whole log", ""], _rows(found), to_stderr=False)
    if found["reasons"]:
        write_out("")
        rows = [[f"{reason['n']:,}", reason["first"]] for reason in found["reasons"]]
        show_table("", ["cannot be used", "the first one"], rows, to_stderr=False)


def _rows(found: dict[str, Any]) -> list[list[str]]:
    contexts, long = found["contexts"], found["long"]
    longest = f"; the longest has {long['most_tokens']:,}: {long['where']}" if long["where"] else ""
    rows = [
        ["records", f"{found['records']:,}"],
        ["that cannot be used", f"{found['unusable']:,}"],
        ["bytes of text", f"{found['text_bytes']:,}"],
        ["the same as an earlier one", f"{found['repeated_records']:,}"],
        ["scripts of the questions", ", ".join(f"{name} {n:,}" for name, n in found["scripts"].items()) or "-"],
        [f"above some {long['above_tokens']:,} tokens", f"{long['n']:,}{longest}"],
    ]
    if found["repeated_ids"] is not None:
        rows.insert(4, ["with an earlier one's id", f"{found['repeated_ids']:,}"])
    if contexts:
        per_record = f"{contexts['min']} to {contexts['max']}, median {contexts['median']:g}"
        rows += [
            ["contexts of a record", per_record],
            ["records without contexts", f"{found['without_contexts']:,}"],
            ["blank contexts beside others", f"{found['blank_contexts']:,}"],
        ]
    return rows

"""`ctxrel check`: hold a finished run to gates."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ...evaluators.errors import GateNotMet
from ..console import show_table, write_json
from ..reports.summaries import read_summary
from ..runs.gates import figures_in, judge_gates, low_in
from . import groups
from . import options as opt
from .grouping import with_groups
from .run import raise_broken

EPILOG = "Example: ctxrel check support_en.ctxrel --fail-under 0.2 --fail-under context_relevance.mrr=0.1"


@with_groups
def check(
    run: Annotated[Path, typer.Argument(metavar="DIR|summary.json", help="The folder of a run, or its summary.")],
    *,
    gate_options: groups.GateOptions,
    report_files: groups.ReportOptions,
    as_json: opt.AsJson = False,
) -> None:
    """Hold a finished run to gates.

    Exit 3 and a line for each that is not met, or where the run is not complete.
    """
    gates = gate_options.parse()
    reports = report_files.parse()
    summary = read_summary(run)
    if summary["evaluators"]:  # a run that waits for batches has no figures yet
        gates.check_names(figures_in(summary), low_in(summary))
    summary["gates"] = [gate._asdict() for gate in judge_gates(gates, summary)]
    reports.write(summary)
    _show(summary, as_json=as_json)
    if summary["status"] != "complete":
        raise GateNotMet(f"the run in {str(run)!r} is not complete but {summary['status']}; run it again to go on")
    raise_broken(summary["gates"])


def _show(summary: dict[str, Any], *, as_json: bool) -> None:
    gates = summary["gates"]
    if as_json:
        met = summary["status"] == "complete" and all(gate["met"] for gate in gates)
        write_json({"status": summary["status"], "met": met, "gates": gates})
        return
    words = {True: "met", False: "not met", None: "not told"}
    rows = [[gate["evaluator"], gate["gate"], _value(gate["value"]), words[gate["met"]]] for gate in gates]
    show_table("", ["evaluator", "gate", "found", ""], rows, to_stderr=False)


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"

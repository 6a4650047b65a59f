"""`ctxrel calibrate`: a judge against people's labels."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...evaluators.errors import UsageError
from ..console import show_table, write_error, write_json
from ..records.paths import FieldPath
from . import options as opt

if TYPE_CHECKING:
    from ..reports.labels import Labels

EPILOG = (
    "Example: ctxrel calibrate support_en.ctxrel --labels sample_data/support_en_labels.csv "
    "--label-field rater_1 --label-field rater_2"
)


def calibrate(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULTS...", help="Folders of runs, or files of rows; several are ranked.")
    ],
    *,
    labels: Annotated[
        Path, typer.Option(metavar="FILE", help="Records with an id and a label, in any format of logs.")
    ],
    label_field: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Where the label stands, label by default; repeatable, one for each rater."),
    ] = None,
    id_field: opt.IdField = "id",
    evaluator: Annotated[
        list[str] | None, typer.Option("-e", "--evaluator", metavar="NAME", help="Only its rows; repeatable.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="SCORE", help="From which score on it is a 1, where labels are 0 and 1; 0.5 by default."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Tell how far a judge agrees with people.

    Their labels also correct the score of the whole log.
    """
    from ..reports.calibrating import calibrate as calibrate_results  # noqa: PLC0415  # 15 ms that others need not pay
    from ..reports.labels import read_labels  # noqa: PLC0415
    from ..reports.rows import open_results  # noqa: PLC0415

    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(f"--threshold {threshold}: write a number")
    fields = [FieldPath(path) for path in label_field or ["label"]]
    given = read_labels(labels, fields, FieldPath(id_field or "id"))
    opened = [open_results(path) for path in results]
    blocks = [
        block for each in opened for block in calibrate_results(each, given, evaluators=evaluator, threshold=threshold)
    ]
    blocks.sort(key=lambda block: -1.0 if block["kappa"]["value"] is None else block["kappa"]["value"], reverse=True)
    warnings = [note for each in opened for note in each.notes]
    if as_json:
        counts = {"labels": len(given.ratings), "ties": len(given.ties)}
        write_json({**counts, "warnings": warnings, "results": blocks})
        return
    _note(given)
    for warning in warnings:
        write_error(f"note: {warning}")
    _show_ranking(blocks)
    for block in blocks:
        _show(block)


def _note(labels: "Labels") -> None:
    if labels.repeated:
        write_error(f"note: {labels.repeated:,} ids stand in several rows of the labels: taken as several raters")
    if labels.ties:
        write_error(
            f"note: no label where raters are evenly divided: {len(labels.ties):,} of {len(labels.ratings):,} records"
        )


def _show_ranking(blocks: list[dict[str, Any]]) -> None:
    columns = ["results", "evaluator", "model", "labelled", "accuracy", "95 % interval", "kappa", "95 % interval"]
    rows = [
        [
            block["results"], block["evaluator"], ", ".join(block["models"]) or "-", f"{block['labelled']:,}",
            *_cells(block["accuracy"]), *_cells(block["kappa"]),
        ]
        for block in blocks
    ]  # fmt: skip
    show_table("", columns, rows, to_stderr=False)


def _show(block: dict[str, Any]) -> None:
    title = f"{block['results']}: {block['evaluator']}"
    if block["not_judged"]:
        title += f"; {block['not_judged']:,} labelled records could not be judged"
    if block["classes"] is not None:
        grades = [each["class"] for each in block["classes"]]
        counts = {(cell["label"], cell["verdict"]): cell["n"] for cell in block["confusion"]}
        columns = [
            "label",
            *(f"judged {grade:g}" for grade in grades),
            "precision",
            "95 % interval",
            "recall",
            "95 % interval",
        ]
        rows = [
            [
                f"{each['class']:g}", *(f"{counts.get((each['class'], grade), 0):,}" for grade in grades),
                *_cells(each["precision"]), *_cells(each["recall"]),
            ]
            for each in block["classes"]
        ]  # fmt: skip
        show_table(title, columns, rows, to_stderr=False)
    score = block["score"]
    means = [
        ["judge, all records", f"{score['judge']:.3f}", ""],
        ["people, labelled records", *_cells(score["labels"])],
        [f"corrected (weight {score['corrected']['weight']:.2f})", *_cells(score["corrected"])],
    ]
    if block["raters"]:
        means.append([f"alpha of raters ({block['raters']['records']:,} records)", *_cells(block["raters"]["alpha"])])
    show_table("" if block["classes"] is not None else title, ["score", "", "95 % interval"], means, to_stderr=False)


def _cells(found: dict[str, Any] | None) -> tuple[str, str]:
    value = found and found.get("value", found.get("mean"))
    interval = found and found["interval_95"]
    return ("-" if value is None else f"{value:.3f}", f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else "-")

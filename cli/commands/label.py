"""`ctxrel label`: labels by hand, for `ctxrel calibrate`."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ...evaluators.errors import UsageError
from ...evaluators.evaluator import Evaluator, load_evaluator
from ...evaluators.record import Record
from ..console import harmless, write_error
from ..records import Log, open_log
from ..records.inputs import STDIN
from ..reports.labelling import LabelFile, parse_label
from . import groups
from . import options as opt
from .grouping import with_groups

EPILOG = "Example: ctxrel label sample_data/support_en.jsonl --labels labels.jsonl --sample 20"
_SKIP, _QUIT = "s", "q"
_ASKED = "label (y, n or a grade; s skips, q ends): "


@with_groups
def label(
    inputs: opt.Inputs,
    *,
    labels: Annotated[Path, typer.Option(metavar="FILE", help="Where labels are added, as JSON Lines.")],
    evaluator: Annotated[
        str, typer.Option("-e", "--evaluator", metavar="NAME|FILE.yaml", help="Whose inputs are shown.")
    ] = "context_relevance",
    rater: Annotated[
        str, typer.Option(metavar="NAME", help="The field of the label; another one for each rater.")
    ] = "label",
    field_options: groups.FieldOptions,
    selection: groups.SelectionOptions,
) -> None:
    """Label records by hand, without seeing what a judge said.

    The same command goes on another day where you stopped. A sample is drawn as `ctxrel run` draws it: with the same
    seed it is a part of a larger one.
    """
    if STDIN in inputs:
        raise UsageError("labels are typed on standard input, where no log can be; name the log's file")
    file = LabelFile(labels, rater)
    asked = load_evaluator(evaluator)
    log = open_log(inputs, field_options.parse(), asked.inputs, selection=selection.parse())
    if labels.exists() and any(Path(name).is_file() and labels.samefile(name) for name in log.names):
        raise UsageError(f"--labels {str(labels)!r} is the log itself; name another file")
    log.draw()
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # half a character, as a terminal leaves one, is no label
    done = file.known()
    before = len(done)
    given = _label_all(_usable(log, asked), asked, file, done)
    write_error(f"{given:,} labelled{f', {before:,} before' if before else ''}; they are in {labels}")


def _usable(log: Log, evaluator: Evaluator) -> Iterator[Record]:
    """Records that have what is shown of them."""
    for position in log.records():
        record = position.record
        if record.problem is None and not any(name in record.problems for name in evaluator.inputs):
            yield record


def _label_all(records: Iterator[Record], evaluator: Evaluator, file: LabelFile, done: set[str]) -> int:
    """How many were labelled before somebody had enough."""
    given = 0
    for record in records:
        if record.id in done:
            continue
        write_error(f"\n{evaluator.definition.description}\n\n{_shown(record, evaluator)}\n")
        word = _ask()
        if word == _QUIT:
            break
        label = parse_label(word)
        if label is not None:
            file.add(record.id, label)
            done.add(record.id)
            given += 1
    return given


def _shown(record: Record, evaluator: Evaluator) -> str:
    """A record's inputs as a person reads them."""
    parts = []
    for name in evaluator.inputs:
        value = record.input(name)
        if isinstance(value, (list, tuple)):
            parts += [f"{name} {place}: {item}" for place, item in enumerate(value, start=1)] or [f"{name}: none"]
        else:
            parts.append(f"{name}: {value}")
    return harmless("\n\n".join(parts))


def _ask() -> str:
    """What was typed: a label, or that the record is skipped, or that this is enough; that too where nobody types."""
    while True:
        sys.stderr.write(_ASKED)
        sys.stderr.flush()
        line = sys.stdin.readline()
        word = line.strip().lower()
        if not line:
            write_error("")  # ends the line of the question, which nobody has
            return _QUIT
        if word in (_SKIP, _QUIT) or parse_label(word) is not None:
            return word
        write_error(f"{harmless(word)!r} is no label")

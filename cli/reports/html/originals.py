"""The records that a run judged, found again: in its rows, else in the log it read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from ....evaluators.errors import CtxrelError
from ....evaluators.evaluator import load_evaluator
from ....evaluators.record import Record
from ...records import Fields, Log, open_log
from ...records.carrying import Carrying
from ...records.fields import Layout, Needs
from ...records.finding import find_layout
from ...records.log import Position
from ...records.paths import FieldPath
from ...records.sampling import Selection
from ...records.schemas import find_schema
from ...records.source import Row as Entry
from ...records.where import parse_condition
from ...runs.finished import InputHash
from ..rows import ResultsFile
from .detail import fits
from .records import Row, whole_rows

_PROBED = 50
_USUAL: Needs = {"question": "text", "contexts": "contexts"}
_KEEP = "the rows hold statements, not contexts; with --with-input the next run keeps its records in its rows"


class Originals(Protocol):
    """Where records come from; asked in the order of the rows."""

    missing: str | None
    """Why records are not to be had, None where they are."""
    with_contexts: bool
    """Whether they have contexts that were read."""
    shown: frozenset[str]
    """The fields of carried records that are a question, contexts or another input."""

    def of(self, rows: Sequence[Row]) -> Record | None:
        """The record that some rows are about; None where it cannot be told."""

    def changed(self) -> bool:
        """After the last record: whether this was not what the run judged."""


class NoOriginals:
    """There are none."""

    with_contexts = False
    shown: frozenset[str] = frozenset()

    def __init__(self, missing: str) -> None:
        self.missing: str | None = missing

    def of(self, rows: Sequence[Row]) -> Record | None:  # noqa: ARG002  # there is none, whatever they are about
        """None."""
        return None

    def changed(self) -> bool:
        """No."""
        return False


class CarriedOriginals:
    """Those that the rows hold themselves."""

    missing: str | None = None

    def __init__(self, layout: Layout) -> None:
        self.with_contexts = "contexts" in layout.inputs
        self.shown = layout.columns
        self._layout = layout

    def of(self, rows: Sequence[Row]) -> Record | None:
        """The record, if its row holds it as it was judged."""
        value = carried_value(rows[0])
        record = self._layout.record(Entry("", value, None, 0), rows[0]["index"]) if value is not None else None
        return record if record and fits(rows, record) else None

    def changed(self) -> bool:
        """No."""
        return False


class LogOriginals:
    """Those of the log, read again from its beginning."""

    missing: str | None = None
    shown: frozenset[str] = frozenset()

    def __init__(self, log: Log, fingerprint: str | None, *, with_contexts: bool) -> None:
        self.with_contexts = with_contexts
        self._positions = iter(log.records())
        self._fingerprint = fingerprint
        self._hash = InputHash()
        self._last: Position | None = None

    def of(self, rows: Sequence[Row]) -> Record | None:
        """The record, if it is as it was judged. Raises InputError."""
        index = rows[0]["index"]
        while self._last is None or self._last.record.index < index:
            if not self._advance():
                return None
        record = self._last.record
        return record if record.index == index and fits(rows, record) else None

    def changed(self) -> bool:
        """Whether the log as a whole differs from that of a run that read it to its end. Raises InputError."""
        while self._fingerprint and self._advance():
            pass
        return self._fingerprint is not None and self._hash.result().fingerprint != self._fingerprint

    def _advance(self) -> bool:
        """One record further; False behind the last one."""
        position = next(self._positions, None)
        if position is None:
            return False
        self._last = position
        self._hash.add(position)
        return True


def find_originals(run: ResultsFile) -> Originals:
    """The records of a run: in its rows (`--with-input`, `--keep`), else in its log. Raises InputError."""
    configuration = (run.summary or {}).get("configuration") or {}
    needs = _needs(configuration)
    fields = _fields(configuration)
    if layout := _carried_layout(run, fields, needs):
        return CarriedOriginals(layout)
    if not configuration:
        return NoOriginals(f"The run has left no summary that names its log: {_KEEP}.")
    if ((run.summary or {}).get("input") or {}).get("size") is None:
        return NoOriginals(f"The run read a pipe, which cannot be read again: {_KEEP}.")
    return _from_log(run, configuration, fields, needs)


def log_changed(run: ResultsFile) -> NoOriginals:
    """What stands for a log that was found not to be the one that was judged."""
    files = ((run.summary or {}).get("input") or {}).get("files") or []
    return NoOriginals(f"The log ({', '.join(files[:3])}) has changed since the run: {_KEEP}.")


def carried_value(row: Row) -> dict[str, object] | None:
    """The record a row carries: whole, or the fields that were kept beside what every row has."""
    if isinstance(row.get("input"), dict):
        whole: dict[str, object] = row["input"]
        return whole
    kept = row.get("kept")
    return {"id": row["id"], "question": row["question"], **kept} if isinstance(kept, dict) else None


def _carried_layout(run: ResultsFile, fields: Fields, needs: Needs) -> Layout | None:
    """Where the records in the rows keep their parts; None where the rows hold no contexts."""
    rows = [row for row in islice(whole_rows(run.path), _PROBED) if carried_value(row) is not None]
    if not rows:
        return None
    if not isinstance(rows[0].get("input"), dict):
        named = fields.contexts if fields.contexts and fields.contexts.text in rows[0]["kept"] else None
        fields, needs = Fields(contexts=named, id=FieldPath("id"), question=FieldPath("question")), _USUAL
    with suppress(CtxrelError):
        return find_layout([Entry("", carried_value(row), None, 0) for row in rows], fields, needs, str(run.path))
    return None


def _needs(configuration: Mapping[str, Any]) -> Needs:
    """What the run's evaluators read of a record, as far as they are still to be found."""
    try:
        evaluators = [load_evaluator(name) for name in configuration["evaluators"]]
    except (CtxrelError, KeyError):
        return _USUAL
    return {name: kind for evaluator in evaluators for name, kind in evaluator.inputs.items()}


def _fields(configuration: Mapping[str, Any]) -> Fields:
    """What the run was told of the log's fields."""
    paths = {name: FieldPath(path) for name, path in (configuration.get("fields") or {}).items()}
    schema, records = configuration.get("schema"), configuration.get("records")
    return Fields(
        question=paths.pop("question", None),
        contexts=paths.pop("contexts", None),
        answer=paths.pop("answer", None),
        id=paths.pop("id", None),
        others=paths,
        schema=find_schema(schema) if schema else None,
        records=FieldPath(records) if records else None,
    )


def _from_log(run: ResultsFile, configuration: Mapping[str, Any], fields: Fields, needs: Needs) -> Originals:
    """The log's records, from where the command was started, or from beside the run's folder."""
    selection, carrying = _selection(configuration), _carrying(configuration)
    told = (run.summary or {}).get("input") or {}
    reason = ""
    for inputs in _places(configuration["inputs"], run.folder):
        try:
            log = open_log(inputs, fields, needs, selection=selection, carrying=carrying)
            if log.size == told.get("size"):
                log.draw()
                return LogOriginals(log, told.get("fingerprint"), with_contexts="contexts" in needs)
            reason = reason or f"the log {inputs[0]!r} has changed since the run"
        except CtxrelError as error:
            reason = reason or str(error)
    return NoOriginals(f"The contexts cannot be shown in full ({reason}): {_KEEP}.")


def _places(inputs: Sequence[str], folder: Path) -> Iterator[list[str]]:
    """The inputs as they were named, here and from beside the folder."""
    yield list(inputs)
    beside = folder.resolve().parent
    if beside != Path.cwd():
        yield [str(beside / name) for name in inputs]


def _selection(configuration: Mapping[str, Any]) -> Selection:
    sample = configuration.get("sample") or {}
    return Selection(
        limit=configuration.get("limit"),
        where=[parse_condition(text) for text in sample.get("where") or []],
        sample=sample.get("n"),
        seed=sample.get("seed") or 0,
        by=FieldPath(sample["by"]) if sample.get("by") else None,
    )


def _carrying(configuration: Mapping[str, Any]) -> Carrying:
    keep = [FieldPath(path) for path in configuration.get("keep") or []]
    return Carrying(keep=keep, whole=bool(configuration.get("with_input")))

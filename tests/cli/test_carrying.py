"""What of a log's records goes along into their rows."""

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Record, RunCommand, read_rows, read_summary

WriteLog = Callable[..., Path]
RECORDS: list[Record] = [
    {"question": "What is it?", "contexts": ["It is."], "meta": {"lang": "ko", "tags": ["a", "b"]}, "night": 3},
    {"question": "And now?", "contexts": [], "meta": None, "night": 4},
]
KEPT: list[Record] = [{"meta.lang": "ko", "night": 3}, {"meta.lang": None, "night": 4}]
OPTIONS = ["-m", "offline", "--keep", "meta.lang", "--keep", "night", "--with-input"]


def test_fields_and_records_go_along(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Rows of all evaluators carry what was asked for, from a file as through a pipe, null for an unreadable line."""
    log = write_log(RECORDS)
    log.write_text(log.read_text() + "[broken\n")
    ctxrel("run", log, *OPTIONS, "-e", "context_relevance", "-e", "context_relevance_graded")
    rows = read_rows(Path("log.ctxrel"))
    assert [row["kept"] for row in rows[::2]] == [*KEPT, {"meta.lang": None, "night": None}]
    assert [row["input"] for row in rows[1::2]] == [*RECORDS, None]
    assert list(rows[0])[-3:] == ["error", "kept", "input"]
    configuration = read_summary(Path("log.ctxrel"))["configuration"]
    assert (configuration["keep"], configuration["with_input"]) == (["meta.lang", "night"], True)
    for more in ([], ["--sample", "3"]):
        piped = ctxrel("run", "-", "-o", "-", *OPTIONS, *more, stdin=log.read_text()).stdout.splitlines()
        assert [json.loads(line)["kept"] for line in piped] == [row["kept"] for row in rows[::2]]


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "single columns"])
def test_parquet(ctxrel: RunCommand, whole: bool) -> None:  # noqa: FBT001
    """Columns that nothing else needs are read for it; dates and decimals are texts."""
    day = dt.date(2026, 11, 30)
    rows = [record | {"day": day, "cost": Decimal("0.10"), "other": 1} for record in RECORDS]
    pq.write_table(pa.Table.from_pylist(rows), "log.parquet")
    arguments = OPTIONS if whole else OPTIONS[:-1]
    ctxrel("run", "log.parquet", *arguments, "--keep", "day")
    found = read_rows(Path("log.ctxrel"))
    assert [row["kept"] for row in found] == [kept | {"day": "2026-11-30"} for kept in KEPT]
    if whole:
        assert [row["input"] for row in found] == [
            record | {"day": "2026-11-30", "cost": "0.10", "other": 1} for record in RECORDS
        ]
    else:
        assert "input" not in found[0]


def test_another_value_is_another_run(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """A finished run stands only as long as what was carried along is the same."""
    command = ["run", write_log(RECORDS), "-m", "offline", "--keep", "night"]
    ctxrel(*command)
    assert "nothing has changed" in ctxrel(*command).stderr
    assert "nothing has changed" not in ctxrel(*command, "--keep", "meta").stderr
    ctxrel(*command)
    write_log([RECORDS[0] | {"night": 5}, RECORDS[1]])
    assert "nothing has changed" not in ctxrel(*command).stderr
    assert [row["kept"] for row in read_rows(Path("log.ctxrel"))] == [{"night": 5}, {"night": 4}]


@pytest.mark.parametrize(
    ("name", "said"),
    [("lagn", "; did you mean 'lang'?"), ("meta.zone", ""), ("lang", None), ("note", None)],
)
def test_field_that_is_not_there(ctxrel: RunCommand, name: str, said: str | None) -> None:
    """A field that no record at the beginning has is told of before anything is sent; null is a field too."""
    Path("log.jsonl").write_text('{"question": "q?", "contexts": [], "lang": "en", "note": null}\n')
    done = ctxrel("run", "log.jsonl", "-m", "offline", "--keep", name)
    told = [line for line in done.stderr.splitlines() if "--keep" in line]
    assert done.returncode == 0
    assert told == (
        [] if said is None else [f"note: no record at the beginning has the field {name!r} of --keep{said}"]
    )

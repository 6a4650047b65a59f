"""Results as JSON Lines and Parquet: the same rows whoever reads them, types that do not depend on the rows."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Record, RunCommand, read_rows, read_summary
from judged import row as made_up_row
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, completion, judge_by_hash

from ctxrel.cli.runs import table as tables
from ctxrel.cli.runs.columns import arrow_schema, column_types
from ctxrel.cli.runs.table import ResultsTable
from ctxrel.evaluators import load_evaluator
from ctxrel.evaluators.definition import built_in_names
from ctxrel.evaluators.errors import OutputError

WriteLog = Callable[..., Path]
PAGE = (Path(__file__).parent.parent.parent / "docs" / "results.md").read_text(encoding="utf-8")
MINE = """
name: mine
inputs: [question]
instructions: |
  Say what you think of it. {{output_format}}
outputs:
  tone: {kind: label, values: [good, bad]}
  remark: text
  sure: boolean
  grade: {kind: integer, range: [1, 5]}
  share: {kind: number, range: [0, 1]}
  words: texts
  marks: {kind: numbers, range: [0, 9]}
  more: json
scoring: {value: grade}
"""
REPLY = {
    "relevant_statements": [1],
    "statements": ["It is a thing."],
    "statement_scores": [1],
    "evidence": [[1]],
    "tone": "good",
    "remark": "",
    "sure": True,
    "grade": 4,
    "share": 0.25,
    "words": ["a", "나"],
    "marks": [1, 2.5],
    "more": {"any": "thing"},
}
EVALUATORS = ["-e", "context_relevance", "-e", "faithfulness", "-e", "context_relevance_verbatim", "-e", "mine.yaml"]


def records(count: int, *, broken: int = 0) -> list[Record]:
    """Records of which the last ones cannot be judged."""
    return [
        {
            "id": f"r-{number}",
            "question": f"What is {'the unspeakable' if number >= count - broken else 'item'} {number}?",
            "contexts": [f"Item {number} is a thing. It weighs {number} g."],
            "answer": "It is a thing.",
        }
        for number in range(count)
    ]


def reply(seen: Seen) -> Answer:
    if "unspeakable" in seen.record["question"]:
        return completion(None, refusal="I will not.")
    copied = "statements copied from the contexts" in seen.body["messages"][0]["content"]
    return completion(json.dumps(REPLY | ({"relevant_statements": ["is a thing", "is not there"]} if copied else {})))


def live(server: LoopbackServer, *arguments: str | Path) -> list[str | Path]:
    return ["run", *arguments, "--model", MODEL, "--base-url", server.url]


def plain(value: Any) -> Any:  # noqa: ANN401
    """A reader's value as JSON has it."""
    if isinstance(value, (np.ndarray, list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and math.isnan(value) else value


def rows_of(reading: Any) -> list[Record]:  # noqa: ANN401
    """The rows that one of the three readers has read."""
    if isinstance(reading, duckdb.DuckDBPyRelation):
        return [dict(zip(reading.columns, map(plain, row), strict=True)) for row in reading.fetchall()]
    found = reading.to_dicts() if isinstance(reading, pl.DataFrame) else reading.to_dict("records")
    return [{str(key): plain(value) for key, value in row.items()} for row in found]


def without_nulls(rows: list[Record]) -> list[Record]:
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


def read_as_told(block: int) -> dict[str, Any]:
    """What the page's lines read: those for JSON Lines (0) or for Parquet (1)."""
    names: dict[str, Any] = {"duckdb": duckdb, "pandas": pd, "polars": pl}
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[block], names)  # noqa: S102  # our own page
    return {reader: names[name] for reader, name in (("DuckDB", "rows"), ("pandas", "frame"), ("polars", "table"))}


def types_of(reading: Any) -> dict[str, str]:  # noqa: ANN401
    return {column: str(kind) for column, kind in zip(reading.columns, reading.dtypes, strict=True)}


@pytest.mark.parametrize("broken", [0, 25, 50], ids=["no error", "errors at the end", "nothing but errors"])
def test_all_readers_agree(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, broken: int) -> None:
    """DuckDB, pandas and polars read the same values from both formats, by the lines that the page has."""
    Path("mine.yaml").write_text(MINE, encoding="utf-8")
    server.script = reply
    log = write_log(records(50, broken=broken))
    for name in ("jsonl", "parquet"):
        done = ctxrel(*live(server, log, *EVALUATORS, "--format", name, "-o", name, "--max-errors", "100%"))
        assert done.returncode == (1 if broken == 50 else 0), done.stderr
        Path("log.ctxrel").mkdir(exist_ok=True)
        Path(name, read_summary(Path(name))["results"]).rename(f"log.ctxrel/results.{name}")
    wanted = read_rows(Path("log.ctxrel"))
    assert (len(wanted), sum(row["error"] is not None for row in wanted)) == (200, 4 * broken)
    filled = {key for row in wanted for key, value in row.items() if value not in (None, [])}
    lines, parquet = read_as_told(0), read_as_told(1)
    for reading in lines.values():
        assert without_nulls(rows_of(reading)) == without_nulls(wanted)
    for row in wanted:
        row["more"] = json.dumps(row["more"], separators=(",", ":")) if row.get("more") else None
    for reading in parquet.values():
        assert without_nulls(rows_of(reading)) == without_nulls(wanted)
    for reader in ("DuckDB", "polars"):
        first, second = types_of(lines[reader]), types_of(parquet[reader])
        for column in filled - {"more", "score"}:
            assert first[column] == second[column], (reader, column)


def test_types_that_take_all_rows() -> None:
    """The page's lines find the type of `error` where the first twenty thousand rows have none."""
    row = {"index": 0, "id": "r", "score": 1, "error": None}
    Path("log.ctxrel").mkdir()
    failed = row | {"score": None, "error": {"kind": "refusal", "message": "no"}}
    lines = [json.dumps(row)] * 21_000 + [json.dumps(failed)]
    Path("log.ctxrel/results.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for reading in read_as_told(0).values():
        assert rows_of(reading)[-1] == failed


def test_every_output_has_its_types() -> None:
    """What an output says of its columns are the columns it fills, also those of a failed record."""
    for name in built_in_names():
        for output in load_evaluator(name, explain=True).outputs:
            assert output.types().keys() == output.empty().keys()


@pytest.mark.parametrize("broken", [0, 3], ids=["no error", "nothing but errors"])
def test_the_schema_is_the_options(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, broken: int
) -> None:
    """Whatever the rows hold, the file has the columns of evaluators and options, typed."""
    server.script = reply
    command = live(server, write_log(records(3, broken=broken)), "--format", "parquet", "--keep", "answer")
    ctxrel(*command, "-e", "context_relevance", "-e", "faithfulness")
    evaluators = [load_evaluator(name) for name in ("context_relevance", "faithfulness")]
    schema = pq.read_schema(Path("log.ctxrel", read_summary(Path("log.ctxrel"))["results"]))
    assert schema == arrow_schema(column_types(evaluators, ["kept"]))
    assert schema.field("error").type == pa.struct([("kind", pa.string()), ("message", pa.string())])
    assert schema.field("evidence").type.value_type.value_type.field("span").type == pa.list_(pa.int64())


def test_what_is_carried_is_text(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Fields of the log go along as JSON text, whatever type they have in each record."""
    log = write_log(
        [{**record, "any": value} for record, value in zip(records(4), [1, "a", {"b": [None]}, None], strict=True)]
    )
    ctxrel("run", log, "-m", "offline", "--format", "parquet", "--keep", "any", "--with-input")
    rows = pq.read_table("log.ctxrel/results.parquet").to_pylist()
    assert [row["kept"] for row in rows] == ['{"any":1}', '{"any":"a"}', '{"any":{"b":[null]}}', '{"any":null}']
    assert [json.loads(row["input"]) for row in rows] == [json.loads(line) for line in log.read_text().splitlines()]


def test_columns_of_different_types(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Two evaluators whose outputs of one name differ are refused for Parquet, before anything is written."""
    for name, kind in (("one", "text"), ("two", "boolean"), ("three", "integers"), ("four", "numbers")):
        text = f"name: {name}\ninputs: [question]\ninstructions: 'Say. {{{{output_format}}}}'\noutputs: {{it: {kind}}}\nscoring: none\n"
        Path(f"{name}.yaml").write_text(text, encoding="utf-8")
    done = ctxrel(
        "run",
        write_log(records(1)),
        "--base-url",
        "http://127.0.0.1:9",
        "--format",
        "parquet",
        "-e",
        "one.yaml",
        "-e",
        "two.yaml",
    )
    assert (done.returncode, Path("log.ctxrel").exists()) == (2, False)
    assert "'one' and 'two' fill the column 'it' with values of different types" in done.stderr
    assert column_types([load_evaluator("three.yaml"), load_evaluator("four.yaml")], [])["it"] == ["number"]


def test_a_finished_run_stands_and_formats_take_turns(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """The same command again changes nothing; another format leaves its own file alone, with the same rows."""
    log, folder = write_log(records(40)), Path("log.ctxrel")
    contents: dict[str, bytes] = {}
    for name in ("parquet", "jsonl", "parquet"):
        done = ctxrel("run", log, "-m", "offline", "--format", name)
        assert (done.returncode, "nothing has changed" in done.stderr) == (0, False)
        (file,) = folder.glob("results*")
        assert contents.setdefault(name, file.read_bytes()) == file.read_bytes()
        assert read_summary(folder)["results"] == file.name == f"results.{name}"
        again = ctxrel("run", log, "-m", "offline", "--format", name)
        assert "nothing has changed" in again.stderr
        assert again.stderr.endswith(f"results: log.ctxrel/results.{name}\n")
    assert read_summary(folder)["configuration"]["format"] == "parquet"


def test_parquet_is_no_stream(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """A table cannot go to standard output."""
    done = ctxrel("run", write_log(records(1)), "-m", "offline", "-o", "-", "--format", "parquet")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == (
        "ctxrel: Parquet cannot be streamed; name a folder with --output, or write --format jsonl"
    )


def parquet_run(server: LoopbackServer, log: Path) -> "subprocess.Popen[bytes]":
    arguments = live(server, log, "--format", "parquet", "-c", "4")
    return subprocess.Popen([sys.executable, "-m", "ctxrel.cli", *map(str, arguments)], stderr=subprocess.DEVNULL)


def judged(server: LoopbackServer, process: "subprocess.Popen[bytes]", count: int) -> None:
    """Wait until so many requests have arrived."""
    while len(server.seen) < count and process.poll() is None:
        time.sleep(0.01)
    assert process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_run_that_is_stopped(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, number: signal.Signals
) -> None:
    """What a signal ends can be read so far; whatever ends it, the same command makes the whole of it."""
    server.script = lambda seen: Answer(body=judge_by_hash(seen).body, delay=0.05)
    log, folder = write_log(records(200)), Path("log.ctxrel")
    with parquet_run(server, log) as process:
        judged(server, process, 60)
        process.send_signal(number)
    assert not (folder / "results.parquet").exists()
    if number is signal.SIGTERM:
        part = pq.read_table(folder / "results.parquet.part").column("index").to_pylist()
        assert part == list(range(len(part)))
        assert len(part) >= 50
    assert ctxrel(*live(server, log, "--format", "parquet")).returncode == 0
    assert pq.read_table(folder / "results.parquet").column("index").to_pylist() == list(range(200))
    assert [file.name for file in folder.glob("results*")] == ["results.parquet"]
    assert len(server.seen) <= 200 + 4 * 2


def row_of(index: int) -> bytes:
    return json.dumps(made_up_row(index, 1, id="x" * 100, repaired=False, cost=None)).encode() + b"\n"


def test_row_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long file is written piece by piece, and is the same rows."""
    monkeypatch.setattr(tables, "_GROUP_BYTES", 50_000)
    table = ResultsTable(Path("results.parquet"), column_types([], []))
    for index in range(2000):
        table.write(row_of(index))
        assert sum(map(len, table._rows)) < 50_000
    table.finish(complete=True)
    file = pq.ParquetFile("results.parquet")
    assert file.num_row_groups >= 4
    assert file.read().column("index").to_pylist() == list(range(2000))
    assert (table.name, Path("results.parquet").stat().st_mode & 0o777) == ("results.parquet", 0o600)


def test_a_full_disk() -> None:
    """A table that cannot be written is an error of one sentence, and takes nobody's name."""
    table = ResultsTable(Path("results.parquet"), column_types([], []))
    table.write(row_of(0))
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, table._file._stream.fileno())
    os.close(full)
    with pytest.raises(OutputError, match=r"'results\.parquet\.part'.*No space left.*kept in the store"):
        table.finish(complete=True)
    assert not Path("results.parquet").exists()

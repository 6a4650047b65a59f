"""Every format by content: the same records whatever holds them, and one sentence where something is wrong."""

import contextlib
import csv
import gzip
import io
import json
import os
import re
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import RunCommand, read_rows
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxrel.cli.records import Fields, open_log
from ctxrel.cli.records.document import read_list
from ctxrel.cli.records.lenient import LenientStream
from ctxrel.cli.records.paths import FieldPath
from ctxrel.cli.records.recognising import open_file
from ctxrel.evaluators import Record
from ctxrel.evaluators.errors import CtxrelError, InputError

RECORDS: list[dict[str, Any]] = [
    {"id": "1", "question": "q?", "contexts": ["a b", 'c\nd, "e"']},
    {"id": "2", "question": "질문?", "contexts": []},
]  # fmt: skip
WANTED = [("1", "q?", ("a b", 'c\nd, "e"')), ("2", "질문?", ())]


def read(path: str | Path, **fields: str) -> list[Record]:
    named = Fields(**{role: FieldPath(text) for role, text in fields.items()})  # type: ignore[arg-type]  # by role
    log = open_log([str(path)], named, {"question": "text", "contexts": "contexts"})
    return [position.record for position in log.records()]


def plain(records: list[Record]) -> list[tuple[str, str, tuple[str, ...]]]:
    assert [record.problem or record.problems for record in records] == [{}] * len(records)
    return [(record.id, record.question, record.contexts) for record in records]


def write(data: bytes | str, name: str) -> Path:
    path = Path(name)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def refused(data: bytes | str, name: str) -> str:
    with pytest.raises(InputError) as raised:
        read(write(data, name))
    return str(raised.value)


def as_lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def as_array(records: list[dict[str, Any]]) -> bytes:
    return json.dumps(records, indent=1).encode()


def as_csv(records: list[dict[str, Any]], delimiter: str = ",") -> bytes:
    text = io.StringIO(newline="")
    table = csv.writer(text, delimiter=delimiter)
    table.writerow(["", *records[0]])
    for number, record in enumerate(records):
        table.writerow([number, *(json.dumps(v) if isinstance(v, list) else v for v in map(record.get, records[0]))])
    return text.getvalue().encode()


def as_arrow(records: list[dict[str, Any]], *, stream: bool = False) -> bytes:
    table = pa.Table.from_pylist(records)
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    return sink.getvalue().to_pybytes()


def as_zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


def as_columns(records: list[dict[str, Any]]) -> bytes:
    return json.dumps({key: [record[key] for record in records] for key in records[0]}).encode()


FORMS: dict[str, tuple[str, Callable[[list[dict[str, Any]]], bytes]]] = {
    "lines": ("log.jsonl", as_lines),
    "array": ("log.json", as_array),
    "array in one line": ("log.jsonl", lambda records: json.dumps(records).encode()),
    "array of any name": ("log.txt", as_array),
    "array with BOM and CRLF": ("log.json", lambda records: b"\xef\xbb\xbf" + as_array(records).replace(b"\n", b"\r\n")),
    "array with NaN": ("log.json", lambda records: json.dumps([{**record, "n": float("nan"), "m": -float("inf"), "t": "NaN"} for record in records]).encode()),
    "wrapped": ("log.json", lambda records: json.dumps({"version": 2, "results": records, "stats": {"question": 1}}, indent=2).encode()),
    "wrapped in one line": ("log.json", lambda records: json.dumps({"data": records}).encode()),
    "columns": ("log.json", as_columns),
    "columns over several lines": ("log", lambda records: json.dumps(json.loads(as_columns(records)), indent=1).encode()),
    "CSV": ("log.csv", as_csv),
    "CSV with BOM and LF": ("log.csv", lambda records: b"\xef\xbb\xbf" + as_csv(records).replace(b"\r\n", b"\n")),
    "CSV with semicolons": ("log.csv", lambda records: as_csv(records, ";")),
    "CSV of any name": ("log", as_csv),
    "TSV": ("log.tsv", lambda records: as_csv(records, "\t")),
    "Arrow file": ("log.arrow", as_arrow),
    "Arrow stream": ("log.bin", lambda records: as_arrow(records, stream=True)),
    "gzip": ("log.jsonl.gz", lambda records: gzip.compress(as_lines(records))),
    "gzip in two members": ("log.gz", lambda records: gzip.compress(as_lines(records[:1])) + gzip.compress(as_lines(records[1:]))),
    "array in gzip": ("log.json.gz", lambda records: gzip.compress(as_array(records))),
    "columns in zstd": ("log.zst", lambda records: as_zstd(as_columns(records))),
    "zstd": ("log.jsonl.zst", lambda records: as_zstd(as_lines(records))),
    "CSV in zstd": ("log.csv.zst", lambda records: as_zstd(as_csv(records))),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    """The same records come out, whatever holds them."""
    name, spell = FORMS[form]
    assert plain(read(write(spell(RECORDS), name))) == WANTED


@settings(max_examples=40)
@example([{"id": "0", "question": "q\0?", "contexts": []}])
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "id": st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5),
                "question": st.just("q?") | st.text(st.characters(codec="utf-8"), max_size=20).map("q{}?".format),
                "contexts": st.lists(st.text(st.characters(codec="utf-8"), max_size=20).map("c {}".format), max_size=3),
            }
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_records(records: list[dict[str, Any]]) -> None:
    """Any texts go through every format unchanged."""
    wanted = [(record["id"], record["question"], tuple(record["contexts"])) for record in records]
    for name, spell in (FORMS[form] for form in ("lines", "array", "wrapped", "columns", "CSV", "gzip")):
        assert plain(read(write(spell(records), name))) == wanted
    assert plain(read(write(as_arrow([{"contexts": ["c"]} | r for r in records]), "log.arrow"))) == wanted


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (f'[{{"question": "q?", "contexts": {DEEP}}}]', "log.json:[0] or soon after: "),
        (DEEP, "log.json:[0] or soon after: "),
        (f'{{"n": 1,\n"data": [{{"question": "q?", "contexts": {DEEP}}}]}}', "log.json: "),
        (f'{{"question": ["q?"],\n"contexts": [{DEEP}]}}', "log.json: "),
    ],
    ids=["in a record", "array", "list under a key", "columns"],
)
def test_nested_without_end(data: str, place: str) -> None:
    """What takes the parser squared time is refused, and where it stands is told."""
    said = refused(data, "log.json")
    assert said.startswith(place)
    assert "nested more than 1,000 levels deep" in said


def test_brackets_in_texts_are_no_levels() -> None:
    """Only what opens a list or an object counts, however much of it there is."""
    records = [{"id": str(n), "question": "[{" * 600, "contexts": ["[" * 999, '"{']} for n in range(300)]
    assert len(read(write(as_array(records), "log.json"))) == 300
    nested = "[" * 100 + "]" * 100
    text = ", ".join([f'{{"question": "q?", "contexts": [], "n": {nested}}}'] * 200)
    assert len(read(write(f"[{text}]", "log.json"))) == 200


@pytest.mark.parametrize("data", [as_array(RECORDS), as_csv(RECORDS), gzip.compress(as_lines(RECORDS)), as_zstd(as_lines(RECORDS)), gzip.compress(as_array(RECORDS))], ids=["array", "CSV", "gzip", "zstd", "array in gzip"])  # fmt: skip
def test_pipes(ctxrel: RunCommand, tmp_path: Path, data: bytes) -> None:
    """What can be read once, from its beginning, comes from a pipe too."""
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(data), daemon=True)
    writer.start()
    assert ctxrel("run", "pipe", "-m", "offline").returncode == 0
    assert [row["id"] for row in read_rows(tmp_path / "pipe.ctxrel")] == ["1", "2"]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'{\n "results": [\n{"question": "q?"}]}\n', "pipe:1: a JSON object over several lines, which cannot be read from a pipe; give the file's name"),
        (as_arrow(RECORDS), "pipe: Arrow is read from a file, not from a pipe; give the file's name"),
        (gzip.compress(as_lines(RECORDS))[:-12], "cannot read 'pipe': Compressed file ended before the end-of-stream marker was reached"),
    ],
    ids=["object", "Arrow", "torn gzip"],
)  # fmt: skip
def test_refused_from_a_pipe(ctxrel: RunCommand, data: bytes, sentence: str) -> None:
    """What takes more than one pass is not read from a pipe, and the sentence says what to give instead."""
    os.mkfifo("pipe")
    threading.Thread(target=lambda: Path("pipe").write_bytes(data), daemon=True).start()
    done = ctxrel("run", "pipe", "-m", "offline")
    assert done.stderr.startswith(f"ctxrel: {sentence}"), done.stderr


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        pytest.param("a.json", "[]", "'a.json' is empty: it holds no records", id="empty array"),
        pytest.param("a.json", "{}", "a.json: no field looks like the question; name the question with --question-field (there are: no fields)", id="empty object"),
        pytest.param("a.json", '{"results": []}', "'a.json' is empty: it holds no records", id="empty list"),
        pytest.param("a.json", '[{"question": "q?"}, oops]', "a.json:[1]: not valid JSON: invalid char in json text; the records before it were read", id="broken array"),
        pytest.param("a.json", '[{"question": "q?"}, {"ques', "a.json:[1]: not valid JSON: premature EOF; the records before it were read", id="torn array"),
        pytest.param("a.json", b'[{"question": "\xff"}]', "a.json:[0]: not valid JSON: invalid bytes in UTF8 string; the records before it were read", id="no UTF-8"),
        pytest.param("a.json", '{\n"results": [\n{"question": "q?"},\n{"question": oops}]}', "a.json: not valid JSON at results[1]: invalid char in json text", id="broken list"),
        pytest.param("a.json", "[1, 2]", "a.json:[0]: a number, not a JSON object; no record at the beginning can be read", id="numbers"),
        pytest.param("a.json", '{"cases": [{"a": 1}], "runs": [{"b": 1}], "n": 1}', "a.json: the records may be those of 'cases' or 'runs'; choose with --records cases", id="two lists"),
        pytest.param("a.json", '{"questions": ["q?", "r?"], "contexts": [["a"]]}', "a.json: columns of unequal length ('questions' has 2, 'contexts' has 1); write one object per record", id="unequal columns"),
        pytest.param("a.csv", "question,contexts,question\n", "a.csv:1: the header names 'question' twice; rename one of them", id="header twice"),
        pytest.param("a.csv", "question,contexts\n", "'a.csv' is empty: it holds no records", id="header alone"),
        pytest.param("a.csv", "", "'a.csv' is empty: it holds no records", id="empty CSV"),
        pytest.param("a.csv", b"question,caf\xe9\n", "a.csv:1: the header is not UTF-8; save the log as UTF-8", id="Latin-1 header"),
        pytest.param("a.csv", '"question,contexts\n', "a.csv:1: the header is not valid CSV: unexpected end of data", id="open header"),
        pytest.param("a.csv", "question,contexts\n".encode("utf-16"), "a.csv:1: no UTF-8 text; save the log as UTF-8", id="UTF-16 CSV"),
        pytest.param("a.arrow", "question", "'a.arrow' is no Arrow file by its first bytes; is it complete?", id="no Arrow"),
        pytest.param("a.arrow", b"ARROW1\0\0torn", "cannot read 'a.arrow' as Arrow: ", id="torn Arrow"),
        pytest.param("a.feather", b"FEA1", "'a.feather' is Feather of the first version; save it again as Feather V2 or Parquet", id="old Feather"),
        pytest.param("a.gz", gzip.compress(b"PAR1"), "'a.gz' holds Parquet inside gzip; unpack it first", id="Parquet in gzip"),
        pytest.param("a.gz", gzip.compress(as_lines(RECORDS))[:-12], "cannot unpack 'a.gz' as gzip: Compressed file ended before the end-of-stream marker was reached; is it complete?", id="torn gzip"),
        pytest.param("a.zst", as_zstd(as_lines(RECORDS))[:-4], "cannot unpack 'a.zst' as zstd: Truncated compressed stream; is it complete?", id="torn zstd"),
    ],
)  # fmt: skip
def test_refused(name: str, data: bytes | str, sentence: str) -> None:
    """What is wrong as a whole is one sentence with the place and the next step."""
    assert refused(data, name).startswith(sentence)


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        pytest.param("a.json", '[{"question": "q?", "contexts": []}, 5]', "a.json:[1]: a number, not a JSON object", id="number in array"),
        pytest.param("a.json", '{"results": [{"question": "q?", "contexts": []}, {"question": "q?"}]}', "a.json:results[1]: the field 'contexts' is missing", id="missing field"),
        pytest.param("a.csv", 'question,contexts\nq?,"a\nb"\nr?\n', "a.csv:4: 1 cell, the header has 2; is a quote missing?", id="short row"),
        pytest.param("a.csv", 'question,contexts\nq?,a\nr?,"b" c\n', "a.csv:3: not valid CSV: ',' expected after '\"'", id="quote inside"),
        pytest.param("a.csv", 'question,contexts\nq?,a\nr?,"b\nc,d\n', "a.csv:3: a quote that is opened here is never closed", id="open quote"),
        pytest.param("a.csv", b"question,contexts\nq?,a\nr?,caf\xe9\n", "a.csv:3: not UTF-8; save the log as UTF-8", id="Latin-1 cell"),
    ],
)  # fmt: skip
def test_one_bad_record(name: str, data: bytes | str, problem: str) -> None:
    """A single record's fault is its own, with its place."""
    good, bad = read(write(data, name))
    assert good.question == "q?"
    assert (bad.problem or next(iter(bad.problems.values()))) == problem


def test_a_broken_first_line_is_no_document() -> None:
    """JSON Lines that start with a broken record stay JSON Lines."""
    for torn in (b'{"question": "q?", "contexts": [\n', b'{"question": oops}\n'):
        assert [bool(record.problem) for record in read(write(torn + as_lines(RECORDS), "log.json"))] == [
            True,
            False,
            False,
        ]


def test_one_record_alone() -> None:
    """An object that has a question is a record, in one line or several, also with a list of objects inside."""
    record = {"question": "q?", "contexts": [{"text": "a b"}]}
    for indent in (None, 2):
        assert [found.contexts for found in read(write(json.dumps(record, indent=indent), "log.json"))] == [("a b",)]
    assert len(read(write(json.dumps({"turns": [{"q": "q?", "c": "a b"}]}), "log.jsonl"), question="turns[0].q", contexts="turns[0].c")) == 1  # fmt: skip


LONG = "query_id,query,query_run,passage_id,passage,generated_answer\n"


def test_one_row_per_passage() -> None:
    """Consecutive rows of one query and run are one record, in their order; another run is another record."""
    rows = "a,q?,1,[1],one,\na,q?,1,[2],two,A\na,q?,2,[1],three,B\nb,r?,1,[1],four,C\n"
    records = read(write(LONG + rows, "log.csv"))
    assert plain(records) == [("a", "q?", ("one", "two")), ("a", "q?", ("three",)), ("b", "r?", ("four",))]
    assert [(record.where, record.answer) for record in records] == [
        ("log.csv:2", "A"),
        ("log.csv:4", "B"),
        ("log.csv:5", "C"),
    ]


def test_a_broken_row_spoils_its_record_alone() -> None:
    """A record with a broken row is not judged by the passages that are left; the next one is."""
    rows = "a,q?,1,[1],one,A\na,q?,1\na,q?,1,[3],three,A\nb,r?,1,[1],four,C\n"
    spoilt, good = read(write(LONG + rows, "log.csv"))
    assert spoilt.problem == "log.csv:3: 3 cells, the header has 6; is a quote missing?"
    assert good.contexts == ("four",)
    torn = "log.csv:3: 1 cell, the header has 6; is a quote missing?"
    between = read(write(LONG + "a,q?,1,[1],one,A\nb\nb,r?,1,[1],four,C\nc,s?,1,[1],five,D\n", "log.csv"))
    assert [record.problem for record in between] == [torn, torn, None]


def test_numbers_as_in_json_lines() -> None:
    """Numbers of an array are those of JSON Lines: whole ones, fractions, ones too long or too large."""
    text = '{"a": 1, "b": 0.5, "c": 18446744073709551615, "d": 123456789012345678901234567890, "e": true, "f": [1.5]}'
    (lines,) = open_file(write(text + "\n", "log.jsonl")).peek(1)
    (array,) = open_file(write(f"[{text}]", "log.json")).peek(1)
    assert array.value == lines.value
    assert [type(item) for item in (array.value or {}).values()] == [int, float, int, float, bool, list]


def test_a_folder_picks_up_every_format() -> None:
    """A folder's logs are read whatever their format, packed ones too; other files are left alone."""
    Path("logs").mkdir()
    for number, form in enumerate(("lines", "array", "CSV", "Arrow file", "gzip", "CSV in zstd")):
        name, spell = FORMS[form]
        write(spell(RECORDS), f"logs/{number}-{name}")
    write("notes", "logs/notes.txt")
    assert plain(read("logs")) == WANTED * 6


def test_output_is_named_without_the_packing(ctxrel: RunCommand, tmp_path: Path) -> None:
    """The folder of `log.jsonl.gz` is the one of `log.jsonl`."""
    write(gzip.compress(as_lines(RECORDS)), "log.jsonl.gz")
    assert ctxrel("run", "log.jsonl.gz", "-m", "offline").returncode == 0
    assert len(read_rows(tmp_path / "log.ctxrel")) == 2


class Endless(io.RawIOBase):
    """An array without an end."""

    def __init__(self) -> None:
        self.given = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self.given += 1
        return b"[" * (self.given == 1) + b'{"a": 1}, ' * 100


def test_an_array_streams() -> None:
    """Records come as the array is read, not after it."""
    endless = Endless()
    rows = read_list("log", lambda: cast("BinaryIO", endless))
    assert [next(rows).value for _ in range(50)] == [{"a": 1}] * 50
    assert endless.given < 5


@pytest.mark.parametrize("form", ["array", "wrapped", "columns", "CSV", "array in gzip"])
def test_memory_stays_flat(form: str) -> None:
    """A log of 16 MB takes a fraction of that, in any text format."""
    name, spell = FORMS[form]
    path = write(spell([{"id": str(n), "question": "q?", "contexts": ["word " * 400]} for n in range(8000)]), name)
    source = open_file(path)
    tracemalloc.start()
    assert sum(1 for _ in source.rows()) == 8000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_long_string_takes_linear_time() -> None:
    """A text of 30 MB in an array is read in pieces that grow with it."""
    text = "word " * 6_000_000
    path = write(json.dumps([{"question": "q?", "contexts": [text]}]), "log.json")
    pieces = 0
    with path.open("rb") as file:
        stream = LenientStream(file)
        while stream.read(1 << 16):
            pieces += 1
    assert pieces < 30
    (record,) = read(path)
    assert record.contexts == (text,)


@given(st.text('[]{}",:\\ nNaInfity-\ufeff1x'), st.integers(1, 9))
def test_lenient_stream(text: str, size: int) -> None:
    """Whatever the pieces, NaN and Infinity become null outside of strings, and nothing else changes."""
    tokens = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\\?$))|-?(?:NaN|Infinity)', re.DOTALL)
    wanted = tokens.sub(lambda match: match[1] or "null", text.removeprefix("\ufeff"))
    stream = LenientStream(cast("BinaryIO", io.BytesIO(text.encode())))
    assert b"".join(iter(lambda: stream.read(size), b"")).decode() == wanted


@given(st.sampled_from([b"[", b"{", b'{"a":[', b"question,b\n", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"ARROW1", b"\xff" * 4, b""]), st.binary(max_size=80), st.sampled_from(["", ".json", ".csv", ".txt"]))  # fmt: skip
def test_any_bytes(start: bytes, data: bytes, suffix: str) -> None:
    """Whatever the bytes, there are records or one of our errors."""
    path = write(start + data, f"any{suffix}")
    with contextlib.suppress(CtxrelError):
        read(path)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_two_columns_of_one_name(suffix: str) -> None:
    """A table that names two columns alike is refused, as CSV is: one would silently take the other's place."""
    table = pa.table(
        [pa.array(["a?"]), pa.array(["b?"]), pa.array([["c"]])], names=["question", "question", "contexts"]
    )
    path = f"log.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(InputError, match=r"has two columns 'question'; rename one of them"):
        open_log([path], Fields(), {"question": "text", "contexts": "contexts"})

"""Logs as they are: what is read as a record, what is one record's fault, and what is refused with a sentence."""

import contextlib
import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import RunCommand, read_rows
from hypothesis import given
from hypothesis import strategies as st

from ctxrel.cli.records import Fields, open_log
from ctxrel.cli.records.formats import LINES
from ctxrel.cli.records.paths import FieldPath, Missing
from ctxrel.cli.records.streams import StreamedPipe
from ctxrel.cli.records.texts import Unfit, contexts_of
from ctxrel.evaluators import Record
from ctxrel.evaluators.errors import CtxrelError, InputError, UsageError

GOOD = b'{"question": "q?", "contexts": ["a b"]}\n'


NEEDS = {"question": "text", "contexts": "contexts"}


def read(*paths: str | Path, **fields: str) -> list[Record]:
    """All records of a log that is read for context relevance."""
    return read_for(NEEDS, *paths, **fields)


def read_for(needs: dict[str, str], *paths: str | Path, **fields: str) -> list[Record]:
    """All records of a log; `fields` are paths by role, those of further inputs too."""
    named = {role: FieldPath(path) for role, path in fields.items()}
    own = {role: named.pop(role, None) for role in ("question", "contexts", "answer", "id")}
    log = open_log([str(path) for path in paths], Fields(**own, others=named, schema=None), needs)
    return [position.record for position in log.records()]


def problem_of(record: Record) -> str | None:
    """Why a record cannot be used."""
    return record.problem or next(iter(record.problems.values()), None)


def write(data: bytes, name: str = "log.jsonl") -> Path:
    path = Path(name)
    path.write_bytes(data)
    return path


def refused(data: bytes, name: str = "log.jsonl", **fields: str) -> str:
    """The sentence with which a log is refused."""
    with pytest.raises(InputError) as raised:
        read(write(data, name), **fields)
    return str(raised.value)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xef\xbb\xbf" + GOOD + GOOD, id="BOM"),
        pytest.param(GOOD.replace(b"\n", b"\r\n") * 2, id="CRLF"),
        pytest.param(GOOD + b"\n  \n" + GOOD, id="blank lines"),
        pytest.param(GOOD + GOOD.rstrip(), id="no final newline"),
        pytest.param(GOOD.replace(b"}", b', "x": NaN, "y": -Infinity}') * 2, id="NaN"),
        pytest.param(GOOD.replace(b"}", b', "x": "\\ud83d"}') * 2, id="lone surrogate beside"),
    ],
)
def test_two_records(data: bytes) -> None:
    """What other tools write is read as it is."""
    assert [(record.question, record.contexts, problem_of(record)) for record in read(write(data))] == [
        ("q?", ("a b",), None),
        ("q?", ("a b",), None),
    ]


def test_lone_surrogate_is_replaced() -> None:
    """Text that UTF-8 cannot hold comes out as U+FFFD, at the same length."""
    (record,) = read(write(b'{"question": "q\\ud83d?", "contexts": ["a \\ude00 b"]}\n'))
    assert (record.question, record.contexts) == ("q\ufffd?", ("a \ufffd b",))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"question": "q?", "contexts": [', "log.jsonl:7: not valid JSON: unexpected end of data at column 33"),
        (b"[1, 2]", "log.jsonl:7: an array, not a JSON object"),
        (b"null", "log.jsonl:7: null, not a JSON object"),
        (b'{"question": "\xff", "contexts": []}', "log.jsonl:7: not valid JSON: "),
        (b'{"contexts": ["a"]}', "log.jsonl:7: the field 'question' is missing"),
        (b'{"question": "q?"}', "log.jsonl:7: the field 'contexts' is missing"),
        (b'{"question": null, "contexts": []}', "log.jsonl:7: the field 'question' is null, not a text"),
        (b'{"question": " ", "contexts": []}', "log.jsonl:7: the field 'question' is empty"),
        (b'{"question": 5, "contexts": []}', "log.jsonl:7: the field 'question' is a number, not a text"),
        (b'{"question": "q?", "contexts": null}', "log.jsonl:7: the field 'contexts' is null, not a list of texts"),
        (b'{"question": "q?", "contexts": [null, null]}', "log.jsonl:7: the field 'contexts' holds nothing but null"),
        (b'{"question": "q?", "contexts": ["a", 5]}', "log.jsonl:7: the field 'contexts' [1] is a number, not a text"),
        (
            b'{"question": "q?", "contexts": [{"score": 1}]}',
            "log.jsonl:7: the field 'contexts' [0] has no text under text, content, page_content, document.content …; "
            "it has score",
        ),
    ],
)
def test_one_bad_line(ctxrel: RunCommand, tmp_path: Path, line: bytes, problem: str) -> None:
    """A single record's fault is an error row with file and line; all others are judged."""
    write(GOOD * 6 + line + b"\n" + GOOD)
    assert ctxrel("run", "log.jsonl", "-m", "offline").returncode == 3
    rows = read_rows(tmp_path / "log.ctxrel")
    assert [row["status"] for row in rows] == ["evaluated"] * 6 + ["error", "evaluated"]
    assert rows[6]["error"]["kind"] == "bad_input"
    assert rows[6]["error"]["message"].startswith(problem)
    assert (rows[6]["score"], rows[6]["contexts"], rows[6]["index"]) == (None, [], 6)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        pytest.param(b"", "'log.jsonl' is empty: it holds no records", id="empty"),
        pytest.param(b"\n\n", "'log.jsonl' is empty: it holds no records", id="blank"),
        pytest.param(b"oops\n", "log.jsonl:1: not valid JSON: unexpected character, expected a JSON value at column 1; no record at the beginning can be read", id="text"),
        pytest.param(b'{\n  "question": "q?"\n}\n{\n  "question": "r?"\n}', "log.jsonl:1: JSON over several lines, not JSON Lines; write a record per line, for example: jq -c . FILE > FILE.jsonl", id="pretty objects"),
        pytest.param("\ufeff{}".encode("utf-16-le"), "log.jsonl:1: no UTF-8 text; save the log as UTF-8 JSON Lines or as Parquet", id="UTF-16"),
        pytest.param(b'{"a": 1, "text": "x"}\n', "log.jsonl: no field looks like the question; name the question with --question-field (there are: a, text)", id="no question"),
        pytest.param(b'{"question": "q?", "facts": ["a b"]}\n', "log.jsonl: no field looks like the contexts; name the contexts with --contexts-field (there are: question, facts)", id="no contexts"),
        pytest.param(b'{"question": "q?", "documents": ["https://a.b/c", "report.pdf"]}\n', "log.jsonl: the field 'documents' seems to hold names of documents, not their text; name the contexts with --contexts-field (there are: question, documents)", id="URLs are no contexts"),
        pytest.param(b'{"question": "q?", "documents": ["Annual report 2023.pdf", "\xeb\xac\xb8.docx"]}\n', "log.jsonl: the field 'documents' seems to hold names of documents, not their text; name the contexts with --contexts-field (there are: question, documents)", id="file names are no contexts"),
        pytest.param(b'{"question": {"text": "q?"}, "contexts": []}\n', "log.jsonl: the field 'question' is an object, not a text; name the question with --question-field (there are: question, contexts)", id="question in an object"),
        pytest.param(b'{"question": "q?", "contexts": [1]}\n', "log.jsonl: the field 'contexts' [0] is a number, not a text; name the contexts with --contexts-field (there are: question, contexts)", id="numbers are no contexts"),
        pytest.param(b'{"input": "q?", "retrieval_context": null, "context": ["ideal one"]}\n', "log.jsonl: the field 'retrieval_context' is null in every record at the beginning; name the contexts with --contexts-field (there are: input, retrieval_context, context)", id="ideal contexts are not the retrieved"),
        pytest.param(b'{"question": "q?", "context": ["a b"], "documents": ["c d"]}\n', "log.jsonl: the contexts may be 'context' or 'documents'; choose with --contexts-field context", id="ambiguous contexts"),
        pytest.param(b'{"question": "q?", "query": "r?", "contexts": []}\n', "log.jsonl: the question may be 'question' or 'query'; choose with --question-field question", id="ambiguous question"),
    ],
)  # fmt: skip
def test_refused(data: bytes, sentence: str) -> None:
    """A log that is wrong as a whole is refused with one sentence that says where and what to do."""
    assert refused(data) == sentence


def test_named_field_that_is_nowhere() -> None:
    """A field named by a flag and found in no record is a mistake, with the nearest name."""
    assert refused(GOOD, question="qestion") == (
        "log.jsonl: no record has the field 'qestion', did you mean 'question'; "
        "name the question with --question-field (there are: question, contexts)"
    )


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("log.parquet", GOOD, "'log.parquet' is no Parquet file by its first bytes; is it complete?"),
        (
            "log",
            b"a,b\n",
            "cannot tell the format of 'log' by a name without suffix or by its beginning; "
            "convert it to JSON Lines, JSON, CSV, TSV, Parquet or Arrow, with the suffix of its format",
        ),
        ("torn.parquet", b"PAR1torn", "cannot read 'torn.parquet' as Parquet: "),
    ],
)
def test_unknown_format(name: str, data: bytes, sentence: str) -> None:
    """A file that is no log is named, with what is known."""
    assert refused(data, name).startswith(sentence)


def test_absent(ctxrel: RunCommand) -> None:
    """A file that is not there, an empty folder and a folder of other things are each one sentence and exit 2."""
    Path("empty").mkdir()
    assert ctxrel("run", "nowhere.jsonl", "-m", "offline").stderr == "ctxrel: no file 'nowhere.jsonl'; check the path\n"
    done = ctxrel("run", "empty", "-m", "offline")
    assert done.returncode == 2
    assert (
        done.stderr
        == "ctxrel: the folder 'empty' holds no .jsonl, .ndjson, .json, .csv, .tsv, .parquet, .arrow, .feather, .ipc file (of folders in it those like date=2026-11-30 are read); check the path\n"
    )
    assert ctxrel("run", "-", "-", "-o", "x", "-m", "offline").returncode == 2


# One record of each shape that other tools write, by hand.
SHAPES: dict[str, dict[str, Any]] = {
    "haystack": {"question": "Q?", "contexts": ["first one", "second one"], "answer": "A"},
    "haystack documents": {"query": "Q?", "documents": [{"content": "first one"}, {"content": "second one"}]},
    "ragas": {"user_input": "Q?", "retrieved_contexts": ["first one", "second one"], "response": "A", "reference": "R"},
    "deepeval": {"input": "Q?", "actual_output": "A", "retrieval_context": ["first one", "second one"], "context": ["ideal"]},
    "deepeval export": {"input": "Q?", "actualOutput": "A", "retrievalContext": ["first one", "second one"]},
    "trulens": {
        "record_attributes": {
            "ai.observability.retrieval.query_text": "Q?",
            "ai.observability.retrieval.retrieved_contexts": ["first one", "second one"],
        }
    },
    "azure": {"query": "Q?", "context": "first one\nsecond one", "response": "A", "ground_truth": "G"},
    "promptflow": {"question": "Q?", "answer": "A", "context": ["first one", "second one"], "line_number": 1},
    "phoenix": {
        "context.span_id": "7f", "attributes.input.value": "Q?",
        "attributes.retrieval.documents": [{"document.content": "first one"}, {"document.content": "second one"}],
    },
    "langchain": {"input": "Q?", "context": [{"page_content": "first one"}, {"page_content": "second one"}], "answer": "A"},
    "llamaindex": {"query": "Q?", "source_nodes": [{"node": {"text": "first one"}}, {"node": {"text": "second one"}}]},
    "ragchecker": {"query_id": "0", "query": "Q?", "retrieved_context": [{"doc_id": "1", "text": "first one"}, {"text": "second one"}]},
    "mtrag": {"task_id": "1::2", "question": "Q?", "contexts": [{"document_id": "d", "text": "first one"}, {"text": "second one"}]},
    "capitals": {"Question": "Q?", "Contexts": ["first one", "second one"]},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(write_log: Any, shape: str) -> None:  # noqa: ANN401
    """The usual names of question, contexts, answer and id are found."""
    record = SHAPES[shape]
    (found,) = read(write_log([record]))
    assert problem_of(found) is None
    assert found.question == "Q?"
    assert " ".join(" ".join(found.contexts).split()) == "first one second one"
    has_answer = {"answer", "response", "actual_output", "actualOutput"} & record.keys()
    assert found.answer == ("A" if has_answer else None)
    own = next((record[key] for key in ("query_id", "task_id", "context.span_id") if key in record), "0")
    assert found.id == own


@pytest.mark.parametrize(
    "contexts", [["one thing", "two"], [{"text": "one thing"}, {"text": "two"}]], ids=["texts", "objects"]
)
@pytest.mark.parametrize("spell", [json.dumps, repr], ids=["JSON", "Python"])
def test_lists_spelled_out(write_log: Any, contexts: list[Any], spell: Callable[[object], str]) -> None:  # noqa: ANN401
    """A list that a table had to hold as text is a list; a text in brackets is a text."""
    (found,) = read(write_log([{"question": "Q?", "contexts": spell(contexts)}]))
    assert found.contexts == ("one thing", "two")
    assert contexts_of("[see page 3]") == ("[see page 3]",)
    assert contexts_of('["one", null]') == ("one", "")
    assert contexts_of("['one thing.' 'two things.'\n \"it's three\"]") == ("one thing.", "two things.", "it's three")


@pytest.mark.parametrize(
    ("value", "name"), [("a", "a"), (7, "7"), (True, "true"), ({"a": 1}, '{"a":1}'), (None, "0"), ("", "0")]
)
def test_ids(write_log: Any, value: object, name: str) -> None:  # noqa: ANN401
    """Ids of any kind are texts, as JSON writes them; without one the index stands."""
    (found,) = read(write_log([{"id": value, "question": "Q?", "contexts": ["a b"]}]))
    assert found.id == name


def test_named_field_of_the_wrong_kind() -> None:
    """A field named by a flag that can be nothing of the kind is refused before anything is judged."""
    assert refused(GOOD, question="contexts").startswith(
        "log.jsonl: the field 'contexts' is a list, not a text; name the"
    )


def test_contexts_of_one_word(write_log: Any) -> None:  # noqa: ANN401
    """A single word is a context; a single id is none."""
    (found,) = read(write_log([{"question": "Capital?", "contexts": ["Paris"]}]))
    assert found.contexts == ("Paris",)
    assert "seems to hold names" in refused(b'{"question": "q?", "contexts": ["doc_12", "a/b"]}\n')
    (found,) = read(write_log([{"question": "Capital?", "documents": ["spain"], "context": ["Madrid is it."]}]))
    assert found.contexts == ("Madrid is it.",)


def test_a_blob_is_looked_at_in_no_time(write_log: Any) -> None:  # noqa: ANN401
    """A megabyte without a space is one look, not one for each of its digits."""
    blob = "0a1b2c3d" * 130_000
    (found,) = read(write_log([{"question": "Q?", "contexts": [f"{blob} end"]}]))
    assert len(found.contexts[0]) > 1_000_000


def test_two_answers_are_no_answer(write_log: Any) -> None:  # noqa: ANN401
    """Where a log has two fields for an answer, one may be the gold one: none is taken unasked."""
    log = write_log([{"question": "Q?", "contexts": ["a b"], "answer": "gold", "response": "given"}])
    assert [record.answer for record in (*read(log), *read(log, answer="response"))] == [None, "given"]


def test_nested_fields_by_path(write_log: Any) -> None:  # noqa: ANN401
    """Dotted paths with [] reach into the deepest logs."""
    record = {
        "turns": [
            {
                "prompt": {"content": [{"text": "Q?"}]},
                "results": [{"content": {"text": "one"}}, {"content": {"text": "two"}}],
            }
        ],
        "meta": {"key": 12},
    }
    (found,) = read(
        write_log([record]), question="turns[0].prompt.content[-1].text", contexts="turns[0].results[].content.text", id="meta.key"
    )  # fmt: skip
    assert (found.question, found.contexts, found.id) == ("Q?", ("one", "two"), "12")


@pytest.mark.parametrize("path", ["", "a..b", "a[x]", "[0]", ".a", "a.", "a[0", "a b]"])
def test_no_field_path(path: str) -> None:
    """What is no path is a usage error."""
    with pytest.raises(UsageError, match="is no field path"):
        FieldPath(path)


def test_path_misses() -> None:
    """A path that leads nowhere says so, whatever stands in its way."""
    for path in ("b", "a.b", "a[0]", "l[5]", "l.x", "t[]"):
        with pytest.raises(Missing):
            FieldPath(path).get({"a": {}, "l": [1], "t": "text"})


def test_contexts_keep_their_rank() -> None:
    """One text, one object, objects in objects, blanks and nulls beside texts."""
    assert contexts_of("one") == ("one",)
    assert contexts_of({"text": "one"}) == ("one",)
    assert contexts_of([{"document": {"content": {"text": "one"}}}, None, "", "four"]) == ("one", "", "", "four")
    assert contexts_of([]) == ()
    with pytest.raises(Unfit):
        contexts_of(7)


def test_folder_glob_and_several_files() -> None:
    """A folder, a glob and several files are one log; indices run through, each file has a mapping of its own."""
    Path("logs").mkdir()
    write(GOOD, "logs/a.jsonl")
    write(b'{"user_input": "r?", "retrieved_contexts": ["c d"]}\n', "logs/b.ndjson")
    write(b"not a log", "logs/notes.txt")
    for records in (read("logs"), read("logs/[ab].*"), read("logs/a.jsonl", "logs/b.ndjson")):
        assert [(record.index, record.question) for record in records] == [(0, "q?"), (1, "r?")]


def test_later_file_is_checked_before_anything_is_sent(ctxrel: RunCommand) -> None:
    """A second file without usable fields stops the run at once, with nothing judged."""
    write(GOOD, "a.jsonl")
    write(b'{"x": 1}\n', "b.jsonl")
    done = ctxrel("run", "a.jsonl", "b.jsonl", "-m", "offline", "-o", "out")
    assert done.returncode == 2
    assert "b.jsonl: no field looks like the question" in done.stderr
    assert not Path("out").exists()


def test_several_inputs_need_an_output(ctxrel: RunCommand) -> None:
    """Several inputs have no common name."""
    write(GOOD, "a.jsonl")
    done = ctxrel("run", "a.jsonl", "a.jsonl", "-m", "offline")
    assert (done.returncode, "--output" in done.stderr) == (2, True)


@pytest.fixture
def parquet() -> Path:
    """A Parquet log of 7 rows in 3 row groups, with the types that other tools choose."""
    documents = pa.array([[{"text": f"text {number} a"}, {"text": "b c"}] for number in range(7)])
    table = pa.table(
        {
            "qid": pa.array([f"p{number}" for number in range(7)], pa.string_view()),
            "query": pa.array([f"Q{number}?" for number in range(7)]).dictionary_encode(),
            "documents": documents,
            "a.b": pa.array(range(7)),
            "unused": pa.array(["x" * 100] * 7, pa.large_string()),
        }
    )
    path = Path("log.parquet")
    pq.write_table(table, path, row_group_size=3)
    return path


def test_parquet(parquet: Path) -> None:
    """Rows of all row groups, whatever the string type; a place in it is a row."""
    records = read(parquet)
    assert [(record.id, record.question, record.contexts) for record in records] == [
        (f"p{number}", f"Q{number}?", (f"text {number} a", "b c")) for number in range(7)
    ]
    assert records[6].where == "log.parquet:row 7"
    assert read(parquet.rename("log.jsonl")) != []


def test_parquet_with_times_python_cannot_hold() -> None:
    """Nanoseconds, far dates and unknown time zones in any column hinder nobody; as an id they are text."""
    table = pa.table(
        {
            "id": pa.array([1730000000123456789, 2], pa.timestamp("ns")),
            "question": ["q?", "r?"],
            "contexts": [["a b"], ["c d"]],
            "took": pa.array([1234567891, 1], pa.duration("ns")),
            "far": pa.array([2**62, 1], pa.timestamp("us")),
            "zone": pa.array([1, 2], pa.timestamp("us", tz="Mars/Phobos")),
        }
    )
    pq.write_table(table, "log.parquet")
    records = read("log.parquet")
    assert [record.question for record in records] == ["q?", "r?"]
    assert records[0].id.startswith("2024-10-27")


def test_parquet_without_rows() -> None:
    """A Parquet file without rows is empty, not broken."""
    pq.write_table(pa.table({"question": pa.array([], pa.string())}), "log.parquet")
    with pytest.raises(InputError, match=r"'log\.parquet' is empty"):
        read("log.parquet")


def test_pipe_gives_its_first_record_at_once() -> None:
    """A pipe is asked for no more rows than it takes to know the fields."""
    reader, writer = os.pipe()
    os.write(writer, GOOD)
    with io.BufferedReader(io.FileIO(reader)) as stream:
        source = StreamedPipe("<stdin>", stream, LINES)
        assert [row.value for row in source.peek(1)] == [{"question": "q?", "contexts": ["a b"]}]
        os.write(writer, GOOD)
        os.close(writer)
        assert len(list(source.rows())) == 2


def test_named_pipe(ctxrel: RunCommand, tmp_path: Path) -> None:
    """Process substitution works: a pipe by name is read once."""
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(GOOD * 3))
    writer.start()
    assert ctxrel("run", "pipe", "-m", "offline").returncode == 0
    writer.join()
    assert len(read_rows(tmp_path / "pipe.ctxrel")) == 3


class CountedLines(io.RawIOBase):
    """A log without an end that counts what is read of it."""

    def __init__(self) -> None:
        self.read_bytes = 0

    def readable(self) -> bool:
        return True

    def readline(self, _size: int | None = -1, /) -> bytes:
        self.read_bytes += len(GOOD)
        return GOOD

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")


def test_streams() -> None:
    """Rows come as the file is read, not after it."""
    endless = CountedLines()
    rows = StreamedPipe("<stdin>", endless, LINES).rows()  # type: ignore[arg-type]
    for _ in range(3):
        next(rows)
    assert endless.read_bytes <= 4 * len(GOOD)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    """Whatever the bytes, there are records or one of our errors."""
    path = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / f"any-{os.getpid()}.jsonl"  # noqa: S108
    path.write_bytes(data)
    with contextlib.suppress(CtxrelError):
        assert all(record.where.startswith(str(path)) for record in read(path))
    path.unlink()

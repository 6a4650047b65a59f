"""`ctxrel inspect`: what a log holds, and how a run would read it."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from conftest import Record, RunCommand
from servers.loopback import MODEL, LoopbackServer

WriteLog = Callable[..., Path]
RECORDS: list[Record] = [
    {"id": "a", "question": "What do otters eat?", "contexts": ["Otters eat fish.", " "], "lang": "en"},
    {
        "id": "b",
        "question": "수달은 무엇을 먹나요?",
        "contexts": ["수달은 물고기를 먹는다.", "x y", "z w"],
        "lang": "ko",
    },
    {"id": "a", "question": "What do otters eat?", "contexts": ["Otters eat fish.", " "], "lang": "en"},
    {"id": "d", "question": "カワウソは何を食べますか", "contexts": [], "lang": "ja"},
    {"id": "e", "question": "", "contexts": ["x y"], "lang": "en"},
    {"id": "f", "question": "Why?", "contexts": None, "lang": "en"},
    {"id": "g", "question": "How long?", "contexts": ["long " * 5000], "lang": "en"},
]


def inspected(ctxrel: RunCommand, *arguments: str | Path, stdin: bytes = b"") -> dict[str, Any]:
    """What is told of a log."""
    done = ctxrel("inspect", *arguments, "--json", stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_counts(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Everything that can be wrong with a log is counted, with the place of the first one."""
    path = write_log(RECORDS)
    with path.open("a") as file:
        file.write('{"question": \n{"question": "q?", \n')
    found = inspected(ctxrel, path)
    assert {name: value for name, value in found.items() if name not in ("files", "shown")} == {
        "records": 9,
        "unusable": 4,
        "reasons": [
            {"n": 1, "first": f"{path}:5: the field 'question' is empty"},
            {"n": 1, "first": f"{path}:6: the field 'contexts' is null, not a list of texts"},
            {"n": 2, "first": f"{path}:8: not valid JSON: unexpected end of data at column 13"},
        ],
        "contexts": {"min": 0, "median": 1.5, "max": 3},
        "without_contexts": 1,
        "blank_contexts": 2,
        "repeated_ids": 1,
        "repeated_records": 1,
        "text_bytes": found["text_bytes"],
        "long": {"n": 1, "above_tokens": 8000, "most_tokens": 8337, "where": f"{path}:7"},
        "scripts": {"Latin": 4, "Hangul": 1, "Hiragana": 1},
        "evaluator": "context_relevance",
        "config": None,
    }


def test_mapping_and_records(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """Each file has its format and fields, and three records stand there as the judge is shown them in a run."""
    path = write_log(RECORDS)
    found = inspected(ctxrel, path)
    assert found["files"] == [
        {
            "name": str(path),
            "format": "JSON Lines",
            "packing": None,
            "bytes": path.stat().st_size,
            "records": 7,
            "fields": {"question": "question", "contexts": "contexts", "id": "id"},
        }
    ]
    assert ctxrel("run", path, "--limit", "3", "-m", MODEL, "--base-url", server.url, "-c", "1").returncode == 0
    asked = {request.body["messages"][1]["content"] for request in server.seen}
    assert {record["request"] for record in found["shown"]} == asked
    assert [record["id"] for record in found["shown"]] == ["a", "b", "a"]


def test_unreadable_records_are_not_shown(ctxrel: RunCommand) -> None:
    """What cannot be judged is no example of what would be."""
    Path("log.jsonl").write_text(
        '{"question": \n{"question": 1, "contexts": []}\n{"question": "q?", "contexts": ["a b"]}\n'
    )
    assert [record["where"] for record in inspected(ctxrel, "log.jsonl")["shown"]] == ["log.jsonl:3"]


def test_nothing_is_written(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """No key is needed, and no folder is made."""
    path = write_log(RECORDS)
    assert ctxrel("inspect", path).returncode == 0
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["log.jsonl.gz", "log.csv", "log.tsv", "list.json", "key.json", "columns.json", "one.json", "log.parquet", "log.arrow"])  # fmt: skip
def test_formats(ctxrel: RunCommand, name: str) -> None:
    """The format is named."""
    row = {"question": "Why is it?", "contexts": ["a b"]}
    table = pa.Table.from_pylist([row])
    texts: dict[str, tuple[str, str]] = {
        "log.csv": ("question,contexts\nWhy is it?,a b\n", "CSV"),
        "log.tsv": ("question\tcontexts\nWhy is it?\ta b\n", "TSV"),
        "list.json": (json.dumps([row]), "JSON, a list"),
        "key.json": (json.dumps({"results": [row]}), "JSON, list under 'results'"),
        "columns.json": (json.dumps({key: [value] for key, value in row.items()}), "JSON, columns question, contexts"),
        "one.json": (json.dumps(row, indent=1), "JSON, one object"),
    }
    if name in texts:
        Path(name).write_text(texts[name][0])
    else:
        Path("log.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
        pq.write_table(table, "log.parquet")
        pyarrow.feather.write_feather(table, "log.arrow", compression="uncompressed")
    kinds = {"log.jsonl.gz": "JSON Lines", "log.parquet": "Parquet", "log.arrow": "Arrow"}
    (file,) = inspected(ctxrel, name)["files"]
    assert (file["format"], file["records"]) == (kinds.get(name) or texts[name][1], 1)
    assert file["packing"] == ("gzip" if name.endswith(".gz") else None)


def test_several_files(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Records are counted for each file, whose fields may have other names."""
    first, second = write_log(RECORDS[:2], "a.jsonl"), write_log([{"query": "x y", "context": "z"}], "b.jsonl")
    files = inspected(ctxrel, first, second)["files"]
    assert [(file["records"], file["fields"]["question"]) for file in files] == [(2, "question"), (1, "query")]


def test_selection(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """What the options choose is what is counted."""
    path = write_log(RECORDS)
    assert inspected(ctxrel, path, "--where", "lang=ko")["records"] == 1
    assert inspected(ctxrel, path, "--sample", "2")["records"] == 2
    assert inspected(ctxrel, path, "--limit", "3")["files"][0]["records"] == 3


def test_pipe(ctxrel: RunCommand) -> None:
    """A pipe is read to its end."""
    text = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()
    found = inspected(ctxrel, "-", stdin=gzip.compress(text))
    assert (found["files"][0]["bytes"], found["files"][0]["packing"], found["records"]) == (None, "gzip", 7)


def test_other_evaluators(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Fields are those that the evaluators need; contexts are counted where there are to be some."""
    path = write_log([{"question": "q?", "answer": "a."}])
    found = inspected(ctxrel, path, "-e", "answer_relevance")
    assert found["files"][0]["fields"] == {"question": "question", "answer": "answer"}
    assert (found["contexts"], found["without_contexts"], found["unusable"]) == (None, None, 0)
    assert json.loads(found["shown"][0]["request"]) == {"question": "q?", "answer": "a."}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('{"text": "no question"}\n', []),
        ('{"question": "q?", "contexts": []}\n', ["--where", "lang=ko"]),
        ('{"question": "q?", "contexts": []}\n', ["-e", "nothing"]),
        ('{"question": "q?", "contexts": []}\n', ["--field", "tone=x"]),
        ('{"question": "q?", "contexts": []}\n', ["--schema", "bedrock"]),
        ("", []),
    ],
    ids=str,
)
def test_refused_as_in_a_run(ctxrel: RunCommand, text: str, options: list[str]) -> None:
    """What a run refuses is refused with the same sentence."""
    Path("log.jsonl").write_text(text)
    done = ctxrel("inspect", "log.jsonl", *options)
    run = ctxrel("run", "log.jsonl", "-m", "offline", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ctxrel: ")
    assert done.stderr.splitlines()[-1] == run.stderr.splitlines()[-1]


def test_for_people(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """The same in words; long records are cut, and what the config file says holds."""
    write_log([*RECORDS, {"id": "h", "question": 5, "contexts": []}])
    Path("ctxrel.toml").write_text('[run]\nlimit = 8\nmodel = "offline"\nwhere = ["lang!=ko"]\n')
    done = ctxrel("inspect", "log.jsonl", "--keep", "lagn")
    assert done.stderr == (
        "options: ctxrel.toml\n"
        "note: no record at the beginning has the field 'lagn' of --keep; did you mean 'lang'?\n"
    )  # fmt: skip
    size = Path("log.jsonl").stat().st_size
    assert (
        done.stdout
        == f"""\
log.jsonl: JSON Lines, {size:,} bytes, 7 records
  question ← question, contexts ← contexts, id ← id

as context_relevance would show them to the judge:
log.jsonl:1  id a
  {{"question":"What do otters eat?","contexts":[{{"1":"Otters eat fish."}},{{}}]}}
log.jsonl:3  id a
  {{"question":"What do otters eat?","contexts":[{{"1":"Otters eat fish."}},{{}}]}}
log.jsonl:4  id d
  (nothing to ask: no context holds text; the score is 0)

over the whole log
records                       7
that cannot be used           3
bytes of text                 25,124
the same as an earlier one    1
with an earlier one's id      1
scripts of the questions      Latin 4, Hiragana 1
above some 8,000 tokens       1; the longest has 8,337: log.jsonl:7
contexts of a record          0 to 2, median 1
records without contexts      2
blank contexts beside others  2

cannot be used  the first one
1               log.jsonl:5: the field 'question' is empty
1               log.jsonl:6: the field 'contexts' is null, not a list of texts
1               log.jsonl:8: the field 'question' is a number, not a text
"""
    )
    write_log(RECORDS[-1:])
    assert re.search(r" … \(25,\d{3} characters\)\n", ctxrel("inspect", "log.jsonl").stdout)

"""Folders and globs: fields in their names, rows that tell their file, nights that cost only what is new."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Record, RunCommand, read_rows, read_summary
from hypothesis import given
from hypothesis import strategies as st
from servers.loopback import MODEL, LoopbackServer

from ctxrel.cli.records import Fields, open_log
from ctxrel.cli.records.inputs import find_inputs
from ctxrel.cli.records.partition import partition_of
from ctxrel.cli.records.sampling import Selection
from ctxrel.cli.records.where import parse_condition
from ctxrel.evaluators.errors import InputError

NEEDS = {"question": "text", "contexts": "contexts"}


def record(name: str) -> Record:
    return {"id": name, "question": f"What is {name}?", "contexts": [f"{name} is a thing."]}


def write(path: str, *names: str) -> Path:
    """A log with a record for each name, as Parquet or JSON Lines."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([record(name) for name in names]), file)
    else:
        file.write_text("".join(json.dumps(record(name)) + "\n" for name in names), encoding="utf-8")
    return file


def write_nights() -> None:
    write("logs/date=2026-11-29/lang=ko/part-0.parquet", "a")
    write("logs/date=2026-11-29/lang=en/part-0.jsonl", "b")
    write("logs/date=2026-11-30/lang=ko/part-0.parquet", "c", "d")
    write("logs/date=2026-11-30/lang=__HIVE_DEFAULT_PARTITION__/part-0.jsonl", "e")
    write("logs/date=2026-11-30/_old/part-0.jsonl", "f")
    write("logs/z.jsonl", "g")


def ids(*inputs: str, where: str | None = None) -> list[str]:
    selection = Selection(where=[parse_condition(where)] if where else [])
    return [position.record.id for position in open_log(inputs, Fields(), NEEDS, selection=selection).records()]


def test_folders_of_fields() -> None:
    """Folders named like fields are read, in order of their names; others are not, unless a glob names them."""
    write_nights()
    assert ids("logs") == ids("logs/") == ["b", "a", "e", "c", "d", "g"]
    assert ids("logs/date=2026-11-30") == ["e", "c", "d"]
    assert ids("logs/**/*.jsonl") == ["b", "f", "e", "g"]
    assert ids("logs/date=*/lang=ko/*.parquet") == ["a", "c", "d"]


def test_fields_of_folders_are_fields_of_records(ctxrel: RunCommand) -> None:
    """They can be conditions, strata, ids, and carried along; a folder's value takes the place of a record's."""
    write_nights()
    write("logs/date=2026-11-29/lang=ko/part-1.jsonl", "h")
    line = record("h") | {"lang": "xx"}
    Path("logs/date=2026-11-29/lang=ko/part-1.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    keep = ["--keep", "date", "--keep", "lang", "-m", "offline"]
    ctxrel("run", "logs", *keep, "--sample", "9", "--sample-by", "lang", "--where", "date!=null")
    rows = read_rows(Path("logs.ctxrel"))
    assert {(row["id"], row["kept"]["date"], row["kept"]["lang"]) for row in rows} == {
        ("a", "2026-11-29", "ko"), ("b", "2026-11-29", "en"), ("c", "2026-11-30", "ko"), ("d", "2026-11-30", "ko"),
        ("e", "2026-11-30", None), ("h", "2026-11-29", "ko"),
    }  # fmt: skip
    assert set(read_summary(Path("logs.ctxrel"))["input"]["sample"]["strata"]) == {"ko", "en", "null"}
    ctxrel("run", "logs/**/part-1.jsonl", *keep, "--id-field", "date", "--with-input", "-o", "one")
    (row,) = read_rows(Path("one"))
    assert (row["id"], row["input"]) == ("2026-11-29", line | {"lang": "ko", "date": "2026-11-29"})
    ctxrel("run", "logs/date=2026-11-30/lang=ko/part-0.parquet", *keep, "-o", "single")
    assert read_rows(Path("single"))[1]["kept"] == {"date": "2026-11-30", "lang": "ko"}


def test_conditions_leave_files_unopened(ctxrel: RunCommand) -> None:
    """What a folder's name rules out is not opened, and that is said; a condition on both kinds of fields holds."""
    write_nights()
    for path in Path("logs/date=2026-11-29").rglob("part*"):
        path.write_bytes(b"PAR1 is what it is not")
    assert ids("logs/**/*", where="date>=2026-11-30") == ["f", "e", "c", "d"]
    done = ctxrel("run", "logs/date=*/*/*", "-m", "offline", "--where", "date=2026-11-30", "--where", "id=d", "-o", "o")
    assert "2 files in folders that do not meet --where date=2026-11-30 and id=d: left out" in done.stderr
    assert [row["id"] for row in read_rows(Path("o"))] == ["d"]
    with pytest.raises(InputError, match=r"none of 5 files is in a folder that meets --where date=2027-01-01"):
        ids("logs/date=*/*/*", where="date=2027-01-01")


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0/="), min_size=1).map("k{}".format),
        st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0")),
        max_size=3,
    )
)
def test_names_of_folders(fields: dict[str, str | None]) -> None:
    """What Hive and Spark encode in a folder's name is decoded; the file's own name is no field."""
    encoded = "/".join(
        f"{hive(key)}={'__HIVE_DEFAULT_PARTITION__' if value is None else hive(value)}" for key, value in fields.items()
    )
    assert partition_of(f"{encoded}/a=b.jsonl") == fields


def hive(text: str) -> str:
    """As `ExternalCatalogUtils.escapePathName` of Spark does."""
    special = set("\"#%'*/:=?\\\x7f{[]^") | {chr(number) for number in range(1, 32)}
    return "".join(f"%{ord(character):02X}" if character in special else character for character in text)


def test_files_without_records(ctxrel: RunCommand) -> None:
    """An hour without traffic does not keep the others from being judged, and is told; a log of nothing else is."""
    write("logs/hour=1/a.jsonl", "first")
    write("logs/hour=2/a.jsonl")
    write("logs/hour=3/a.jsonl", "second")
    done = ctxrel("run", "logs", "-m", "offline", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "no records in 'logs/hour=2/a.jsonl'\n" in done.stderr
    assert [(row["index"], row["id"]) for row in read_rows(Path("out"))] == [(0, "first"), (1, "second")]
    done = ctxrel("inspect", "logs")
    assert (done.returncode, "no records in 'logs/hour=2/a.jsonl'\n" in done.stderr) == (0, True)
    assert ctxrel("inspect", "logs/hour=2").stderr == "ctxrel: 'logs/hour=2/a.jsonl' is empty: it holds no records\n"
    with pytest.raises(InputError, match=r"none of 2 files holds a record; the first one is 'logs/hour=2/a\.jsonl'"):
        open_log(["logs/hour=2", "logs/hour=2"], Fields(), NEEDS)


def test_rows_tell_their_file(ctxrel: RunCommand) -> None:
    """With a folder, a glob or several inputs each row has its file, in both formats; with a single file none has."""
    write_nights()
    wanted = ["logs/date=2026-11-30/lang=ko/part-0.parquet"] * 2 + ["logs/z.jsonl"]
    for name, given_ in (("folder", ["logs", "--where", "lang=ko", "--where", "date=2026-11-30"]), ("two", wanted[1:])):
        for form in ("jsonl", "parquet"):
            assert ctxrel("run", *given_, "-m", "offline", "-o", f"{name}-{form}", "--format", form).returncode == 0
        files = [row["file"] for row in read_rows(Path(f"{name}-jsonl"))]
        assert files == (wanted[:2] if name == "folder" else wanted)
        assert pq.read_table(f"{name}-parquet/results.parquet").column("file").to_pylist() == files
    ctxrel("run", "logs/z.*", "-m", "offline", "-o", "glob")
    assert list(read_rows(Path("glob"))[0])[-2:] == ["error", "file"]
    ctxrel("run", "logs/z.jsonl", "-m", "offline", "-o", "single")
    assert "file" not in read_rows(Path("single"))[0]


def test_a_renamed_file_is_another_log(ctxrel: RunCommand) -> None:
    """Rows that tell their file are written anew where it has another name."""
    write("logs/a.jsonl", "a")
    command = ["run", "logs", "-m", "offline"]
    ctxrel(*command)
    assert "nothing has changed" in ctxrel(*command).stderr
    Path("logs/a.jsonl").rename("logs/b.jsonl")
    assert "nothing has changed" not in ctxrel(*command).stderr
    assert read_rows(Path("logs.ctxrel"))[0]["file"] == "logs/b.jsonl"


def test_what_could_be_several() -> None:
    """A folder or a glob with one file today has several tomorrow: how it is named decides."""
    write("logs/a.jsonl", "a")
    assert [find_inputs([name]).several for name in ("logs", "logs/*", "logs/a.jsonl", "-")] == [
        True,
        True,
        False,
        False,
    ]
    assert find_inputs(["logs/a.jsonl", "-"]).several


def test_incremental_nights(ctxrel: RunCommand, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second night asks for new records only: of the file that has grown, of the one that came, once for a text."""
    Path("home").mkdir()
    monkeypatch.setenv("HOME", str(Path("home").absolute()))
    command = ["run", "logs/*.jsonl", "-o", "nightly/", "--store=~/cache.sqlite", "-m", MODEL, "--base-url", server.url]
    write("logs/1.jsonl", *(f"item {number}" for number in range(10)))
    assert ctxrel(*command).returncode == 0
    assert (len(server.seen), Path("home/cache.sqlite").is_file(), Path("~").exists()) == (10, True, False)
    write("logs/1.jsonl", *(f"item {number}" for number in range(12)))
    write("logs/2.jsonl", *(f"item {number}" for number in (3, 4, 12, 13, 12)))
    assert ctxrel(*command).returncode == 0
    asked = [seen.record["question"] for seen in server.seen[10:]]
    assert sorted(asked) == [f"What is item {number}?" for number in range(10, 14)]
    rows = read_rows(Path("nightly"))
    assert [row["file"] for row in rows] == ["logs/1.jsonl"] * 12 + ["logs/2.jsonl"] * 5
    assert rows[3]["relevant_statements"] == rows[12]["relevant_statements"]
    requests = read_summary(Path("nightly"))["requests"]
    assert (requests["sent"], requests["reused"]) == (4, 13)
    assert ctxrel(*command, "-o", "other").returncode == 0
    assert len(server.seen) == 14


def test_no_home(ctxrel: RunCommand) -> None:
    """A home folder that is not there is said so."""
    write("log.jsonl", "a")
    done = ctxrel("run", "log.jsonl", "-m", "offline", "--store=~nobody-of-that-name/s.sqlite")
    assert (done.returncode, list(Path().iterdir())) == (2, [Path("log.jsonl")])
    assert "there is no home folder for '~nobody-of-that-name/s.sqlite'; write the whole path" in done.stderr

"""Whatever bytes a log holds: records, or one of our errors; never another one, never a hang."""

import csv
import gzip
import io
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxrel.cli.records import Fields, open_log
from ctxrel.cli.records.finding import find_layout
from ctxrel.cli.records.formats import SUFFIXES
from ctxrel.cli.records.recognising import open_pipe
from ctxrel.evaluators.errors import CtxrelError, InputError

NEEDS = {"question": "text", "contexts": "contexts"}
RECORDS = [{"id": n, "question": f"질문 {n}?", "contexts": [f"a {n}", "b"], "at": {"x": [n, None]}} for n in range(30)]
MOST_SECONDS = 60
_PIPE_BYTES = 1 << 16


@contextmanager
def reads_well() -> Iterator[None]:
    """Nothing in it hangs, or raises what is none of our sentences."""

    def hung(*_: object) -> None:
        raise AssertionError(f"not read after {MOST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(MOST_SECONDS)
    try:
        yield
    except CtxrelError as error:
        _check(error)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _check(error: CtxrelError) -> None:
    assert "\n" not in str(error)


def read_file(data: bytes, suffix: str) -> None:
    """Read a log from a file as a run does."""
    path = Path(f"log{suffix}")
    path.write_bytes(data)
    with reads_well():
        log = open_log([str(path)], Fields(), NEEDS)
        assert all(position.record.index >= 0 for position in log.records())


def read_pipe(data: bytes) -> None:
    """Read a log from a pipe as a run does."""
    reader, writer = os.pipe()
    try:
        os.write(writer, data[:_PIPE_BYTES])
        os.close(writer)
        with reads_well():
            source = open_pipe("<stdin>", reader)
            layout = find_layout(source.peek(50), Fields(), NEEDS, source.name)
            assert all(layout.record(row, 0).where for row in source.rows())
    finally:
        os.close(reader)


def as_lines() -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in RECORDS).encode()


def as_csv() -> bytes:
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(["id", "question", "contexts"])
    table.writerows([record["id"], record["question"], json.dumps(record["contexts"])] for record in RECORDS)
    return text.getvalue().encode()


def as_parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(RECORDS), sink, row_group_size=10, compression="zstd")
    return sink.getvalue()


def as_arrow(new: Callable[..., pa.ipc.RecordBatchFileWriter | pa.ipc.RecordBatchStreamWriter]) -> bytes:
    table, sink = pa.Table.from_pylist(RECORDS), io.BytesIO()
    with new(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=10)
    return sink.getvalue()


VALID: dict[str, bytes] = {
    ".jsonl": as_lines(),
    ".json": json.dumps({"results": RECORDS, "n": 1}, indent=1).encode(),
    ".array.json": json.dumps(RECORDS).encode(),
    ".columns.json": json.dumps({key: [record[key] for record in RECORDS] for key in RECORDS[0]}).encode(),
    ".csv": as_csv(),
    ".parquet": as_parquet(),
    ".arrow": as_arrow(pa.ipc.new_file),
    ".stream.arrow": as_arrow(pa.ipc.new_stream),
    ".jsonl.gz": gzip.compress(as_lines(), mtime=0),
    ".jsonl.zst": pa.compress(as_lines(), codec="zstd", asbytes=True),
    ".csv.gz": gzip.compress(as_csv(), mtime=0),
    ".json.zst": pa.compress(json.dumps(RECORDS).encode(), codec="zstd", asbytes=True),
}


@st.composite
def mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes cut short, with some of them changed, doubled, taken out, or followed by others."""
    changed = bytearray(data)
    for at, value in draw(st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=4)):
        changed[at] = value
    first, last = sorted(draw(st.tuples(st.integers(0, len(data)), st.integers(0, len(data)))))
    match draw(st.sampled_from(["as it is", "cut", "doubled", "taken out", "followed"])):
        case "cut":
            return bytes(changed[:last])
        case "doubled":
            return bytes(changed[:last] + changed[first:])
        case "taken out":
            return bytes(changed[:first] + changed[last:])
        case "followed":
            return bytes(changed) + draw(st.binary(max_size=20))
        case _:
            return bytes(changed)


SYNTAX = st.sampled_from([b"{", b"}", b"[", b"]", b'"', b",", b":", b"\n", b"\\", b"NaN", b"-Infinity", b"1e999", b"\xef\xbb\xbf", b"\0", b"question", b"contexts", b'"question":"q?"', b'"contexts":["a b"]', b"PAR1", b"ARROW1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xff\xff\xff\xff", b"query_id,passage,rank\n", b"\xed\xa0\x80", b"\\ud800"])  # fmt: skip
ANYTHING = st.binary(max_size=300) | st.lists(SYNTAX | st.binary(max_size=3), max_size=30).map(b"".join)
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstd": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@settings(max_examples=400, deadline=None)
@given(ANYTHING, st.sampled_from([*SUFFIXES, "", ".txt"]), st.sampled_from([*PACKINGS]))
def test_any_bytes(data: bytes, suffix: str, packing: str) -> None:
    """Any bytes under any name, packed or not, from a file and from a pipe."""
    packed = PACKINGS[packing](data)
    read_file(packed, suffix)
    read_pipe(packed)


@pytest.mark.parametrize("suffix", VALID)
def test_damaged_logs(suffix: str) -> None:
    """Logs of every format that were damaged: cut, with bytes changed, doubled or lost."""

    @settings(max_examples=60, deadline=None)
    @given(mutated(VALID[suffix]))
    def check(data: bytes) -> None:
        read_file(data, suffix)
        if suffix not in (".parquet", ".arrow", ".stream.arrow"):
            read_pipe(data)

    check()


@pytest.mark.parametrize("suffix", VALID)
def test_whole_logs(suffix: str) -> None:
    """What is damaged above is a log that can be read."""
    path = Path(f"log{suffix}")
    path.write_bytes(VALID[suffix])
    assert len(list(open_log([str(path)], Fields(), NEEDS).records())) == len(RECORDS)


@pytest.mark.parametrize("suffix", [".arrow", ".stream.arrow"])
@pytest.mark.parametrize(
    ("whole", "damaged"),
    [(bytes([0, 0, 0, 0, 9, 0, 0, 0]), bytes([0, 0, 0, 0, 9, 0, 0, 99])), (b"contexts", b"\xff" * 8)],
    ids=["a place far outside", "a name that is no text"],
)
def test_damaged_arrow(suffix: str, whole: bytes, damaged: bytes) -> None:
    """What pyarrow itself takes for good, or ends the process over, is refused."""
    path = Path(f"log{suffix}")
    path.write_bytes(VALID[suffix].replace(whole, damaged))
    assert path.read_bytes() != VALID[suffix]
    with pytest.raises(InputError, match=rf"cannot read 'log{suffix}' as Arrow: "):
        list(open_log([str(path)], Fields(), NEEDS).records())

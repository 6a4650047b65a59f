"""docs/recipes/parquet-month.md."""

import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import read_rows, read_summary
from recipes.conftest import Shell
from recipes.page import Page
from servers.loopback import Answer, LoopbackServer, Seen, cite

PAGE = Page("parquet-month.md")
DAYS = 3
NEW = 4
"""Questions that each day has for itself; two are asked every day."""


def judge(seen: Seen) -> Answer:
    """Questions that are asked every day have good contexts."""
    return cite(1) if "daily" in seen.record["question"] else cite()


def write_part(day: int, part: int, questions: list[str]) -> None:
    folder = Path(f"logs/date=2026-11-{day:02}")
    folder.mkdir(parents=True, exist_ok=True)
    records = [{"id": each, "question": each, "contexts": [f"About {each}."]} for each in questions]
    pq.write_table(pa.Table.from_pylist(records), folder / f"part-{part}.parquet")


@pytest.fixture
def month() -> None:
    """Three days of November in two parts each, and one of December."""
    for day in range(1, DAYS + 1):
        write_part(day, 0, ["daily 1", "daily 2"])
        write_part(day, 1, [f"day {day}, question {n}" for n in range(NEW)])
    Path("logs/date=2026-12-01").mkdir()
    Path("logs/date=2026-12-01/part-0.parquet").write_bytes(b"no Parquet: it is never opened")


@pytest.mark.usefixtures("month")
def test_month(shell: Shell, endpoint: LoopbackServer) -> None:
    """Each night asks for what is new, a late file for its own records, and the whole month for nothing."""
    endpoint.script = judge
    first, estimate, nights, late, whole, reading = PAGE.blocks("bash")
    shell.run(first)
    assert len(endpoint.seen) == 2 + NEW
    assert len(read_rows(Path("nights/2026-11-01"))) == 2 + NEW
    assert f"requests: {NEW} to send, 2 answered from the store" in shell.run(estimate).stdout
    shell.run(nights)
    assert len(endpoint.seen) == 2 + DAYS * NEW
    assert [
        read_summary(Path(f"nights/2026-11-0{day}"))["evaluators"]["context_relevance"]["score"] for day in (1, 3)
    ] == [pytest.approx(2 / 6)] * 2
    write_part(2, 2, ["late"])
    shell.run(late)
    assert len(endpoint.seen) == 2 + DAYS * NEW + 1
    asked = len(endpoint.seen)
    shell.run(whole)
    assert len(endpoint.seen) == asked
    block = read_summary(Path("november"))["evaluators"]["context_relevance"]
    assert (block["n"], block["score"]) == (DAYS * (2 + NEW) + 1, pytest.approx(6 / 19))
    done = shell.run(reading)
    assert len(re.findall(r"^\d{4}-\d\d-\d\d ", done.stdout, re.MULTILINE)) == DAYS
    assert "joined" in done.stdout
    found = duckdb.execute(PAGE.block("sql", "read_parquet")).fetchall()
    assert found == [("2026-11-01", 0.333, 6), ("2026-11-02", 0.286, 7), ("2026-11-03", 0.333, 6)]

"""The page of `ctxrel report`, as it is written: what it holds, what it says of it, and that it can do no harm."""

import base64
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import Record, RunCommand, read_rows
from hypothesis import given
from hypothesis import strategies as st
from judged import write_parts
from servers.decisions import MODELS, deciding
from servers.loopback import MODEL, LoopbackServer, completion

from ctxrel.cli.reports.html.detail import detail_of, fits
from ctxrel.cli.reports.html.survey import survey_of
from ctxrel.evaluators.record import Record as Judged

WriteLog = Callable[..., Path]
SAMPLES = Path(__file__).parent.parent.parent / "sample_data"
_MISSING = [name for name in ("jinja2", "pygal") if find_spec(name) is None]
needs_extra = pytest.mark.skipif(
    bool(_MISSING), reason=f"not installed: {', '.join(_MISSING)} (pip install -e '.[report]')"
)

RECORDS: list[Record] = [
    {
        "id": "t-1",
        "question": "Where is the tower?",
        "contexts": ["The tower is in Paris. It is old.", "Bread is made of flour."],
        "meta": {"tenant": "red"},
        "lang": "en",
    },
    {
        "id": "t-2",
        "question": "Where is the bridge?",
        "contexts": ["😀 Hello. The bridge is in 🏙 Porto. Bye 😀."],
        "meta": {"tenant": "blue"},
        "lang": "en",
    },
    {"id": "t-3", "question": "탑은 어디에 있나요?", "contexts": [], "meta": {"tenant": "red"}, "lang": "ko"},
]


class Page:
    """A page, taken apart."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.index: dict[str, Any] = self._block("index")
        count = len(self.index["chunks"])
        self.records: list[dict[str, Any]] = [record for n in range(count) for record in self._block(f"chunk-{n}")]
        self.notes = re.findall(r'<li dir="auto">(.*?)</li>', text)

    def _block(self, name: str) -> Any:  # noqa: ANN401  # JSON
        found = re.search(rf'<script type="text/plain" id="{name}">([A-Za-z0-9+/=]+)</script>', self.text)
        assert found
        return json.loads(zlib.decompress(base64.b64decode(found[1])))


@pytest.fixture
def report(ctxrel: RunCommand) -> Callable[..., Page]:
    """The page that the command writes to standard output."""

    def make(*arguments: str | Path) -> Page:
        done = ctxrel("report", *arguments, "-o", "-")
        assert done.returncode == 0, done.stderr
        return Page(done.stdout)

    return make


@pytest.fixture
def run(ctxrel: RunCommand, write_log: WriteLog) -> Callable[..., Path]:
    """A run of the offline judge over some records."""

    def judge(records: list[Record], *arguments: str) -> Path:
        write_log(records)
        done = ctxrel("run", "log.jsonl", "-m", "offline", *arguments)
        assert done.returncode == 0, done.stderr
        return Path("log.ctxrel")

    return judge


def marked(page: Page, place: int) -> list[list[str]]:
    """Of a record's contexts the marked parts, cut as a browser would."""
    record = page.records[place]
    wide = [context["text"].encode("utf-16-le") for context in record["contexts"]]
    spans = [context["spans"] for context in record["verdicts"][0]["contexts"]]
    return [
        [text[2 * start : 2 * end].decode("utf-16-le") for start, end in of]
        for text, of in zip(wide, spans, strict=True)
    ]


@needs_extra
def test_contexts_come_from_the_log(run: Callable[..., Path], report: Callable[..., Page]) -> None:
    """Contexts stand on the page in full, with the relevant sentences where browsers count them."""
    page = report(run(RECORDS))
    assert [[context["text"] for context in record["contexts"]] for record in page.records] == [
        record["contexts"] for record in RECORDS
    ]
    assert marked(page, 0) == [["The tower is in Paris."], []]
    assert marked(page, 1) == [["The bridge is in 🏙 Porto."]]
    assert page.index["id"] == ["t-1", "t-2", "t-3"]
    assert page.index["contexts"] == [2, 1, 0]
    assert page.index["evaluators"]["context_relevance"] == {"score": [1, 1, 0], "error": ["", "", ""]}
    assert page.notes == ["the offline judge is a lexical baseline and no LLM: it compares words and knows no meaning"]
    assert "0.667" in page.text


@needs_extra
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["search_en.parquet"], id="parquet"),
        pytest.param(["support_en.jsonl", "--where", "id!=s-002", "--sample", "9", "--seed", "3"], id="sample"),
        pytest.param(["support_en.jsonl", "support_ko.jsonl", "--limit", "45", "--keep", "id"], id="two files"),
        pytest.param(["support_en.jsonl", "-e", "faithfulness", "-e", "context_relevance"], id="evaluators"),
    ],
)
def test_same_selection(ctxrel: RunCommand, report: Callable[..., Page], tmp_path: Path, arguments: list[str]) -> None:
    """The records are those the run read, whatever it chose of its log."""
    paths = [str(SAMPLES / word) if (SAMPLES / word).is_file() else word for word in arguments]
    done = ctxrel("run", *paths, "-m", "offline", "-o", "out.ctxrel")
    assert done.returncode == 0, done.stderr
    page = report("out.ctxrel")
    assert not [note for note in page.notes if "contexts" in note]
    assert len(page.records) == len({row["index"] for row in read_rows(tmp_path / "out.ctxrel")})
    assert all("contexts" in record for record in page.records)


@needs_extra
def test_same_page_from_any_format(ctxrel: RunCommand, run: Callable[..., Path], report: Callable[..., Page]) -> None:
    """Rows of evaluators with other columns, in JSON Lines, in Parquet and in several files, give the same page."""
    options = ["-e", "context_relevance", "-e", "context_relevance_graded", "--keep", "lang"]
    folder = run(RECORDS, *options)
    lines = report(folder)
    assert ctxrel("run", "log.jsonl", "-m", "offline", *options, "--format", "parquet").returncode == 0
    whole = report(folder)
    assert whole.index == lines.index
    assert whole.records == lines.records
    write_parts(folder / "results", pq.read_table(folder / "results.parquet").sort_by("index").to_pylist(), each=2)
    (folder / "results.parquet").unlink()
    summary = json.loads((folder / "summary.json").read_bytes())
    (folder / "summary.json").write_text(json.dumps({**summary, "results": "results"}))
    parted = report(folder)
    assert parted.index == whole.index
    assert parted.records == whole.records
    before = {path.name for path in (folder / "results").iterdir()}
    assert "written: log.ctxrel/report.html" in ctxrel("report", "log.ctxrel/results").stderr
    assert {path.name for path in (folder / "results").iterdir()} == before


@needs_extra
@pytest.mark.parametrize("name", ["results.jsonl", "summary.json", "store.sqlite"])
def test_a_page_takes_the_place_of_a_page_only(run: Callable[..., Path], ctxrel: RunCommand, name: str) -> None:
    """What a run has written stays."""
    path = run(RECORDS) / name
    before = path.read_bytes()
    done = ctxrel("report", path.parent, "-o", path)
    assert (done.returncode, path.read_bytes()) == (2, before)
    assert "is there, and is no page; name another file" in done.stderr


@needs_extra
def test_results_of_several_evaluators_in_parquet(run: Callable[..., Path], report: Callable[..., Page]) -> None:
    """A table with columns that only some evaluators fill makes the page that JSON Lines make."""
    answered = [{**record, "answer": "The tower is in Paris. Cows fly."} for record in RECORDS]
    judged = ("-e", "faithfulness", "-e", "context_relevance", "-e", "context_relevance_graded", "--keep", "lang")
    lines = report(run(answered, *judged))
    table = report(run(answered, *judged, "--format", "parquet"))
    assert table.index == lines.index
    assert table.records == lines.records


@needs_extra
def test_the_file_of_a_record_is_no_verdict(
    ctxrel: RunCommand, write_log: WriteLog, report: Callable[..., Page]
) -> None:
    """A row's file is told of its record, not as if an evaluator had put it out."""
    write_log(RECORDS[:1], "one.jsonl")
    write_log(RECORDS[1:], "two.jsonl")
    ctxrel("run", "one.jsonl", "two.jsonl", "-m", "offline", "-o", "out.ctxrel")
    records = report("out.ctxrel").records
    assert [record["file"] for record in records] == ["one.jsonl", "two.jsonl", "two.jsonl"]
    assert [verdict["values"] for record in records for verdict in record["verdicts"]] == [{}, {}, {}]


@needs_extra
def test_from_another_folder(
    run: Callable[..., Path], report: Callable[..., Page], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A log that was named from where the run was started is found beside the run's folder."""
    folder = run(RECORDS).absolute()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "contexts" in report(folder).records[0]


def _grown(log: Path) -> None:
    with log.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(RECORDS[0]) + "\n")


def _edited(log: Path) -> None:
    log.write_text(log.read_text(encoding="utf-8").replace("flour", "glass"), encoding="utf-8")


@needs_extra
@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(Path.unlink, "no file 'log.jsonl'", id="gone"),
        pytest.param(_grown, "has changed since the run", id="grown"),
        pytest.param(_edited, "The log (log.jsonl) has changed since the run", id="edited where nothing was relevant"),
    ],
)
def test_log_that_is_not_the_one(
    run: Callable[..., Path], report: Callable[..., Page], change: Callable[[Path], None], words: str
) -> None:
    """Without the log that was judged, a page shows the rows' statements by context and says why."""
    folder = run(RECORDS)
    change(Path("log.jsonl"))
    page = report(folder)
    assert words in page.notes[-1].replace("&#39;", "'")
    assert "--with-input" in page.notes[-1]
    assert not any("contexts" in record for record in page.records)
    contexts = page.records[0]["verdicts"][0]["contexts"]
    assert [context["sentences"] for context in contexts] == [["The tower is in Paris."], []]
    assert page.index["contexts"] == [2, 1, 0]


@needs_extra
@pytest.mark.parametrize(
    "carry", [["--with-input"], ["--keep", "contexts"]], ids=["the whole record", "only the contexts"]
)
def test_contexts_in_the_rows(
    ctxrel: RunCommand, write_log: WriteLog, report: Callable[..., Page], carry: list[str]
) -> None:
    """Rows that carry the contexts need no log, also where it was a pipe."""
    log = write_log(RECORDS).read_text(encoding="utf-8")
    ctxrel("run", "-", "-m", "offline", "-o", "kept.ctxrel", *carry, stdin=log)
    ctxrel("run", "-", "-m", "offline", "-o", "bare.ctxrel", stdin=log)
    Path("log.jsonl").unlink()
    assert marked(report("kept.ctxrel"), 1) == [["The bridge is in 🏙 Porto."]]
    assert "The run read a pipe, which cannot be read again" in report("bare.ctxrel").notes[-1]


@needs_extra
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_opinions(run: Callable[..., Path], report: Callable[..., Page], form: str) -> None:
    """Further opinions are in the record's verdict, and what they come to is a table of figures."""
    page = report(run(RECORDS, "--repeat", "2", "--shuffle-contexts", "--format", form))
    first = page.records[0]["verdicts"][0]
    assert first["majority"] == 1
    assert [(each["repeat"], each["shuffled"], each["score"]) for each in first["opinions"]] == [
        (2, False, 1),
        (1, True, 1),
    ]
    assert "opinions" not in first["values"]
    assert "opinions" not in page.records[2]["verdicts"][0]  # nothing was asked
    assert "Stability: what further opinions on the same records say" in page.text
    figures = re.findall(
        r'<tr><th scope="row" dir="auto">(.*?)</th><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>', page.text
    )
    assert ("records whose 2 answers all have the same score", "1.000", "0.342 to 1.000", "2") in figures


@needs_extra
def test_names_of_judges_are_text(run: Callable[..., Path], report: Callable[..., Page]) -> None:
    """A judge's name, which an endpoint can choose, is escaped among the figures and packed among the records."""
    folder, name = run(RECORDS, "--repeat", "2"), "<b>judge</b>"
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    share = {"share": 0.5, "interval_95": [0.1, 0.9], "n": 2}
    judges = {"model": name, "asked": "on disagreement", "n": 2, "agreement": share, "kappa": None, "score": 0.25}
    summary["evaluators"]["context_relevance"]["stability"]["judges"] = judges
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    page = report(folder)
    assert name not in page.text
    assert "Cohen&#39;s kappa with &lt;b&gt;judge&lt;/b&gt;</th><td>–</td>" in page.text


@needs_extra
def test_run_without_an_end(run: Callable[..., Path], report: Callable[..., Page]) -> None:
    """Of a run that was killed the rows so far are shown, a half-written last one aside."""
    folder = run(RECORDS)
    rows = (folder / "results.jsonl").read_bytes()
    (folder / "results.jsonl.part").write_bytes(rows[: rows.rindex(b"t-3")])
    (folder / "summary.json").unlink()
    page = report(folder)
    assert page.index["id"] == ["t-1", "t-2"]
    assert page.notes[0].startswith("The run has not ended, or was killed")
    torn = "log.ctxrel: the last row in results.jsonl.part is cut off, and left out: the run has not ended"
    assert page.notes[1] == torn
    assert "without an end" in page.text
    assert "1.000" in page.text


@needs_extra
def test_rows_that_are_cut_off(run: Callable[..., Path], ctxrel: RunCommand) -> None:
    """Results of a run that ended, with a last row that is not whole, are refused: others may be missing as well."""
    folder = run(RECORDS)
    rows = (folder / "results.jsonl").read_bytes()
    (folder / "results.jsonl").write_bytes(rows[: rows.rindex(b"t-3")])
    done = ctxrel("report", folder)
    assert (done.returncode, done.stderr) == (
        2,
        "ctxrel: log.ctxrel/results.jsonl:3: the last row is cut off, and others may be missing; "
        "run the same `ctxrel run` again, or copy the file once more\n",
    )
    (folder / "results.jsonl").write_bytes(rows.rstrip(b"\n"))  # as an editor may leave it: nothing is missing
    assert ctxrel("report", folder).returncode == 0
    (folder / "results.jsonl").unlink()
    assert "holds no 'results.jsonl', which its summary names; run the same" in ctxrel("report", folder).stderr


@needs_extra
def test_interrupted_run(run: Callable[..., Path], report: Callable[..., Page]) -> None:
    """A run that was stopped names its rows' file and its log; contexts are found record by record."""
    folder = run(RECORDS)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    summary |= {"status": "interrupted", "error": "stopped by SIGINT", "results": "results.jsonl.part"}
    summary["input"] |= {"fingerprint": None, "ids": None}
    rows = (folder / "results.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "results.jsonl.part").write_bytes(b"".join(rows[:2]))
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    page = report(folder)
    assert marked(page, 1) == [["The bridge is in 🏙 Porto."]]
    assert len(page.records) == 2
    assert "The run did not judge its whole log: stopped by SIGINT." in page.notes


@needs_extra
def test_limit(run: Callable[..., Path], report: Callable[..., Page]) -> None:
    """Beyond the limit records are drawn, the same ones each time; figures stay those of all."""
    records = [{"id": f"r-{n}", "question": f"Where is {n}?", "contexts": [f"{n} is here."]} for n in range(40)]
    folder = run(records)
    pages = [report(folder, "--limit", "7") for _ in range(2)]
    assert pages[0].text == pages[1].text
    assert len(pages[0].records) == 7
    assert all("contexts" in record for record in pages[0].records)
    assert pages[0].notes[-1].startswith("The list below holds 7 of 40 records, drawn by chance")
    assert "40 of 40" in pages[0].text


@needs_extra
@pytest.mark.parametrize(
    ("by", "rows"),
    [
        pytest.param("meta.tenant", [["blue", "1", "0", "1"], ["red", "2", "0", "0.5"]], id="kept"),
        pytest.param("lang", [["en", "2", "0", "1"], ["ko", "1", "0", "0"]], id="of the input"),
        pytest.param("language", [["en", "2", "0", "1"], ["ko", "1", "0", "0"]], id="of the question"),
    ],
)
def test_by_field(run: Callable[..., Path], report: Callable[..., Page], by: str, rows: list[list[str]]) -> None:
    """Scores are compared by the values of a field, which records can be filtered by as well."""
    page = report(run(RECORDS, "--keep", "meta.tenant", "--with-input"), "--by", by)
    by = "language (guessed)" if by == "language" else by
    table = page.text.split(f'<h3 dir="auto">Score by {by}</h3>')[1].split("</figure>")[0]
    cells = [re.findall(r"<t[hd][^>]*>([^<]*)", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]
    assert cells[1:] == rows
    (field,) = [field for field in page.index["fields"] if field["name"] == by]
    assert field["values"] == [row[0] for row in rows]
    assert sorted(map(len, map(str, field["places"]))) == [1, 1, 1]


def test_default_fields() -> None:
    """Without --by the fields are those whose few values tell groups apart: neither ids nor one value for all."""
    rows = [
        {
            "index": n,
            "id": str(n),
            "evaluator": "e",
            "status": "evaluated",
            "score": n % 2,
            "question": "q",
            "error": None,
            "kept": {"tenant": "ab"[n % 2], "user": f"u-{n}", "one": 1, "text": "long " * 40, "number": 0.5 * n},
        }
        for n in range(60)
    ]
    survey = survey_of(([row] for row in rows), [])
    assert [breakdown.name for breakdown in survey.breakdowns()] == ["tenant"]
    assert survey.breakdowns()[0].shares["b"]["e"].mean == 1


def test_cost_behind_rows() -> None:
    """The rows' costs add up, and where one is not known nothing is said."""
    row = {
        "index": 0,
        "evaluator": "e",
        "status": "evaluated",
        "score": 1,
        "question": "q",
        "error": None,
        "cost": 0.25,
    }
    assert survey_of([[row], [row]], []).cost == 0.5
    assert survey_of([[row], [{**row, "cost": None}]], []).cost is None


@needs_extra
def test_unknown_field(run: Callable[..., Path], ctxrel: RunCommand) -> None:
    """A field that no row has is met with how to get it there."""
    done = ctxrel("report", run(RECORDS), "--by", "tenant")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no row has this field; carry it along with ctxrel run --keep tenant" in done.stderr


@needs_extra
def test_statements_with_evidence(
    server: LoopbackServer, ctxrel: RunCommand, write_log: WriteLog, report: Callable[..., Page]
) -> None:
    """Statements of the answer come with their verdicts, and the places of their evidence."""
    server.script = lambda _: completion(
        json.dumps({"statements": ["It is in Porto.", "It is new."], "evidence": [[2], []], "statement_scores": [1, 0]})
    )
    write_log([{**RECORDS[1], "answer": "It is in Porto, and new."}])
    ctxrel("run", "log.jsonl", "-e", "faithfulness", "--base-url", server.url, "-m", MODEL)
    page = report("log.ctxrel")
    (record,) = page.records
    assert record["answer"] == "It is in Porto, and new."
    first, second = record["verdicts"][0]["claims"]
    (place,) = first["evidence"]
    start, end = place["span"]
    text = record["contexts"][place["context"]]["text"].encode("utf-16-le")
    assert text[2 * start : 2 * end].decode("utf-16-le") == "The bridge is in 🏙 Porto."
    assert (first["supported"], second["supported"], second["evidence"]) == (True, False, [])
    assert record["verdicts"][0]["values"] == {}
    assert "input tokens" in page.text


@needs_extra
def test_errors(server: LoopbackServer, ctxrel: RunCommand, write_log: WriteLog, report: Callable[..., Page]) -> None:
    """Records that could not be judged are told of by kind, each with its message."""
    server.script = lambda seen: completion(
        None if "tower" in seen.record["question"] else '{"relevant_statements": []}',
        refusal="No." if "tower" in seen.record["question"] else None,
    )
    write_log(RECORDS[:2])
    ctxrel("run", "log.jsonl", "--base-url", server.url, "-m", MODEL)
    page = report("log.ctxrel")
    assert page.index["evaluators"]["context_relevance"]["error"] == ["refusal", ""]
    assert page.records[0]["verdicts"][0]["error"]["kind"] == "refusal"
    assert [context["text"] for context in page.records[0]["contexts"]] == RECORDS[0]["contexts"]
    assert '<option value="error:refusal">refusal</option>' in page.text
    assert "Errors. Records that could not be judged, by kind." in page.text


@needs_extra
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_probabilities(ctxrel: RunCommand, write_log: WriteLog, report: Callable[..., Page], form: str) -> None:
    """Where the judge gave a probability for each sentence, contexts and statements have theirs."""
    write_log([{**RECORDS[0], "answer": "It is in Paris. It is new."}])
    script = deciding(lambda _, name: 0.75 if name == "1" else 0.25)
    with LoopbackServer(script, models=MODELS) as server:
        evaluators = ["-e", "context_relevance", "-e", "faithfulness"]
        done = ctxrel("run", "log.jsonl", *evaluators, "--api", "decisions", "--base-url", server.url, "--format", form)
    assert done.returncode == 0, done.stderr
    (record,) = report("log.ctxrel").records
    relevance, faithfulness = record["verdicts"]
    assert [context["probabilities"] for context in relevance["contexts"]] == [[0.75, 0.25], [0.25]]
    assert [claim["probabilities"] for claim in faithfulness["claims"]] == [[0.75], [0.25]]
    assert relevance["values"] == {}
    assert len(record["contexts"]) == 2


@needs_extra
def test_evaluator_without_contexts(
    server: LoopbackServer, ctxrel: RunCommand, write_log: WriteLog, report: Callable[..., Page]
) -> None:
    """Where no evaluator read contexts none are shown, nor is it said that there were none."""
    server.script = lambda _: completion('{"relevant": true, "score": 4, "answers": true}')
    write_log([{**RECORDS[1], "answer": "In Porto."}])
    ctxrel("run", "log.jsonl", "-e", "answer_relevance", "--base-url", server.url, "-m", MODEL)
    page = report("log.ctxrel")
    (record,) = page.records
    assert record["answer"] == "In Porto."
    assert "contexts" not in record
    assert page.index["contexts"] == [None]
    assert "Contexts per record" not in page.text


@needs_extra
def test_unreadable_record(ctxrel: RunCommand, report: Callable[..., Page]) -> None:
    """A line that is no record has its message, and no contexts that could be taken for an empty retrieval."""
    Path("log.jsonl").write_text(
        json.dumps(RECORDS[0]) + "\n{broken\n" + json.dumps({**RECORDS[1], "contexts": None}) + "\n", encoding="utf-8"
    )
    ctxrel("run", "log.jsonl", "-m", "offline")
    page = report("log.ctxrel")
    assert page.index["evaluators"]["context_relevance"]["error"] == ["", "bad_input", "bad_input"]
    assert ["contexts" in record for record in page.records] == [True, False, False]
    assert page.index["contexts"] == [2, None, None]


HOSTILE = (
    "</script><script>alert(1)</script><!-- ]]> <img src=x onerror=alert(2)> javascript:alert(3) \u2028 \u202e \x00"
)


@needs_extra
def test_text_is_no_markup(run: Callable[..., Path], report: Callable[..., Page]) -> None:
    """Whatever stands in records, values, names and messages, the page has the elements it would have without."""
    plain, hostile = (
        [
            {
                "id": word,
                "question": f"{word}?",
                "contexts": [f"{word}. A."],
                "answer": word,
                "tenant": f"{word}{n % 2}",
            }
            for n in range(6)
        ]
        for word in ("w", HOSTILE)
    )
    tags = []
    for records in (plain, hostile):
        page = report(run(records, "--keep", "tenant", "--keep", "id"), "--by", "tenant")
        tags.append(re.findall(r"<[a-zA-Z/!][^\s>]*", page.text))
        assert page.records[0]["question"] == records[0]["question"]
    assert tags[0] == tags[1]
    assert "onerror=alert(2)&gt;" in page.text


@needs_extra
def test_policy(run: Callable[..., Path], report: Callable[..., Page]) -> None:
    """The page allows its own style and script by their hashes and nothing else, and names no address."""
    text = report(run(RECORDS)).text
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    directives = dict(part.strip().split(" ", 1) for part in policy.replace("&#39;", "'").split(";"))
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert directives[directive] == f"'sha256-{base64.b64encode(sha256(content.encode()).digest()).decode()}'"
    assert directives["default-src"] == "'none'"
    assert not re.search(r"\s(?:on\w+|style)=", re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.DOTALL))
    assert set(re.findall(r"https?://[^\s\"'<]*", text)) <= {"http://www.w3.org/2000/svg"}


@needs_extra
def test_file(run: Callable[..., Path], ctxrel: RunCommand) -> None:
    """The page is written into the run's folder, or where it is wanted, and readable by its owner only."""
    folder = run(RECORDS)
    done = ctxrel("report", folder)
    assert done.stderr.startswith("written: log.ctxrel/report.html (3 records, ")
    assert (folder / "report.html").stat().st_mode & 0o777 == 0o600
    ctxrel("report", folder, "-o", "page.html")
    assert Path("page.html").read_bytes() == (folder / "report.html").read_bytes()
    done = ctxrel("report", folder, "-o", "no/page.html")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "ctxrel: cannot write 'no/page.html': No such file or directory",
    )


@needs_extra
def test_no_run(ctxrel: RunCommand, tmp_path: Path) -> None:
    """What is no run's folder, or holds broken rows, is met with one sentence and exit 2."""
    (tmp_path / "log.txt").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "results.jsonl").write_text('{"index": 0, "evaluator": "e"\n', encoding="utf-8")
    for folder, words in {
        "absent": "no folder 'absent'",
        "log.txt": "'log.txt' is no run's folder but a file; to judge a log: ctxrel run log.txt",
        "empty": "'empty' holds no results.jsonl",
        "broken": "broken/results.jsonl:1: this is no row of a run",
    }.items():
        done = ctxrel("report", folder)
        assert done.returncode == 2
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1


@needs_extra
def test_a_file_of_the_run(ctxrel: RunCommand, write_log: Callable[..., Path]) -> None:
    """Rows and summary stand for their folder; a run that changes the rows tells of a report that is older."""
    log = write_log([{"question": "q?", "contexts": ["a"]}])
    assert ctxrel("run", log, "-m", "offline").returncode == 0
    Path("log.ctxrel/results.jsonl.part").write_bytes(Path("log.ctxrel/results.jsonl").read_bytes())
    for name in ("results.jsonl", "summary.json", "results.jsonl.part"):
        done = ctxrel("report", f"log.ctxrel/{name}")
        assert done.stderr.startswith("written: log.ctxrel/report.html (1 record, ")
    assert "of an earlier run" not in ctxrel("run", log, "-m", "offline").stderr
    write_log([{"question": "r?", "contexts": ["b"]}])
    said = "note: log.ctxrel/report.html is of an earlier run; ctxrel report writes it anew"
    assert ctxrel("run", log, "-m", "offline").stderr.splitlines()[-1] == said


def test_without_the_extra(run: Callable[..., Path]) -> None:
    """Without its packages the command names the extra."""
    code = (
        "import sys; sys.modules['jinja2'] = sys.modules['pygal'] = None\n"
        "from ctxrel.cli.app import main\n"
        f"sys.argv = ['ctxrel', 'report', '{run(RECORDS)}']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == 2
    assert done.stderr == "ctxrel: the report needs Jinja2 and pygal: pip install 'ctxrel[report]'\n"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=3), st.data())
def test_spans_in_utf16(texts: list[str], data: st.DataObject) -> None:
    """A span cuts the same characters out of a text in UTF-16 as it did in Python."""
    cuts = [sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2))) for text in texts]
    verdicts = [
        {
            "relevant": start < end,
            "statements": 1,
            "relevant_statements": int(start < end),
            "spans": [[start, end]] if start < end else [],
        }
        for start, end in cuts
    ]
    statements = [text[start:end] for text, (start, end) in zip(texts, cuts, strict=True) if start < end]
    row = {
        "index": 0,
        "id": "0",
        "evaluator": "e",
        "status": "evaluated",
        "score": 1,
        "question": "q",
        "error": None,
        "found": statements,
        "contexts": verdicts,
    }
    record = Judged(index=0, id="0", where="", question="q", contexts=tuple(texts))
    assert fits([row], record)
    (verdict,) = detail_of([row], record)["verdicts"]
    for text, (start, end), found in zip(texts, cuts, verdict["contexts"], strict=True):
        for first, last in found["spans"]:
            assert text.encode("utf-16-le")[2 * first : 2 * last].decode("utf-16-le") == text[start:end]


def test_record_that_does_not_fit() -> None:
    """A record with other text at the places of the statements is not the one that was judged."""
    row = {
        "index": 0,
        "id": "0",
        "evaluator": "e",
        "status": "evaluated",
        "score": 1,
        "question": "q",
        "error": None,
        "relevant_statements": ["It rains."],
        "contexts": [{"relevant": True, "statements": 1, "relevant_statements": 1, "spans": [[0, 9]]}],
    }
    judged = Judged(index=0, id="0", where="", question="q", contexts=("It rains.",))
    assert fits([row], judged)
    for other in (("It pours.",), ("It",), ("It rains.", "b"), ()):
        assert not fits([row], Judged(index=0, id="0", where="", question="q", contexts=other))

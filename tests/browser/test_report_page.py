"""The report's page in a browser: searched, filtered, opened, by mouse, by keyboard and by rule."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Record, RunCommand
from servers.chromium import MARKS, Browser, browser
from servers.loopback import MODEL, LoopbackServer, completion

pytestmark = MARKS
WriteLog = Callable[..., Path]
MakePage = Callable[..., Path]

RECORDS: list[Record] = [
    {
        "id": "tower",
        "question": "Where is the tower?",
        "answer": "It is in Paris.",
        "contexts": ["Bread is made of flour.", "😀 Hello. The tower is in 🏙 Paris. It is old.\nIt rusts."],
        "lang": "en",
    },
    {
        "id": "bridge",
        "question": "Who built the bridge?",
        "answer": "Nobody knows.",
        "contexts": ["The bridge was built by Ada Moor."],
        "lang": "en",
    },
    {
        "id": "탑",
        "question": "탑은 어디에 있나요?",
        "answer": "",
        "contexts": ["탑은 공원에 있습니다. 강은 북쪽에 있습니다."],
        "lang": "ko",
    },
    {
        "id": "מגדל",
        "question": "מתי נבנה המגדל?",
        "answer": "",
        "contexts": ["המגדל נבנה בשנת 1909 (tower)."],
        "lang": "he",
    },
    {"id": "none", "question": "Is there nothing?", "answer": "", "contexts": [], "lang": "en"},
]
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "<img src=https://example.org/x onerror=alert(2)>",
    "<a href='javascript:alert(3)'>here</a>",
    "line\u2028separators\u2029and \u202ereversed\u202c",
    "nul \x00 and \ud800 alone",
    "{{ 7 * 7 }} ${alert(4)} &lt;b&gt; ]]>",
]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Browser]:
    """A browser for one test."""
    with browser(tmp_path / "profile") as running:
        yield running


@pytest.fixture
def make_page(ctxrel: RunCommand) -> MakePage:
    """The report on a run of the offline judge."""

    def make(records: list[Record], *arguments: str) -> Path:
        # Escaped, for JSON can hold what UTF-8 cannot.
        Path("log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        done = ctxrel("run", "log.jsonl", "-m", "offline", *arguments)
        assert done.returncode == 0, done.stderr
        done = ctxrel("report", "log.ctxrel")
        assert done.returncode == 0, done.stderr
        return Path("log.ctxrel/report.html")

    return make


def questions(tab: Any) -> list[str]:  # noqa: ANN401  # Playwright's
    """What the list shows."""
    texts: list[str] = tab.locator(".question").all_text_contents()
    return texts


def wait_for_hits(tab: Any, words: str) -> None:  # noqa: ANN401
    tab.wait_for_function("(words) => document.getElementById('hits').textContent.startsWith(words)", arg=words)


def test_search_filter_open(opened: Browser, make_page: MakePage) -> None:
    """Words find records by questions and contexts, filters narrow them, and a record opens to its marked sentences."""
    tab = opened.open(make_page(RECORDS, "--keep", "lang"))
    assert questions(tab) == [record["question"] for record in RECORDS]

    tab.fill("#query", "flour TOWER")
    wait_for_hits(tab, "1 of 5 records")
    assert questions(tab) == ["Where is the tower?"]
    tab.click(".question")
    assert tab.locator(".detail mark").all_text_contents() == ["The tower is in 🏙 Paris."]
    assert tab.locator(".detail .context").nth(1).text_content() == RECORDS[0]["contexts"][1]

    tab.click("button[type=reset]")
    wait_for_hits(tab, "5 of 5 records")
    tab.fill("#most-score", "0")
    wait_for_hits(tab, "1 of 5 records")
    assert questions(tab) == ["Is there nothing?"]
    tab.fill("#most-score", "")
    tab.fill("#least-contexts", "2")
    wait_for_hits(tab, "1 of 5 records")
    tab.click("button[type=reset]")
    tab.get_by_label("lang", exact=True).select_option(label="ko")
    wait_for_hits(tab, "1 of 5 records")
    assert questions(tab) == ["탑은 어디에 있나요?"]
    tab.get_by_label("language (guessed)", exact=True).select_option(label="en")
    wait_for_hits(tab, "0 of 5 records")
    assert tab.locator(".empty").is_visible()


def test_evaluators_and_errors(
    opened: Browser, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog
) -> None:
    """Scores, states and marks are those of the chosen evaluator; statements show their evidence, errors their message."""

    def judge(seen: Any) -> Any:  # noqa: ANN401
        if "bridge" in seen.record["question"]:
            return completion(None, refusal="No.")
        if "answer" not in seen.record:
            return completion(json.dumps({"relevant_statements": [3]}))
        claims = {"statements": ["It is in Paris.", "It is new."], "evidence": [[1, 4], []], "statement_scores": [1, 0]}
        return completion(json.dumps(claims))

    server.script = judge
    write_log(RECORDS[:2])
    ctxrel("run", "log.jsonl", "-e", "context_relevance", "-e", "faithfulness", "--base-url", server.url, "-m", MODEL)
    assert ctxrel("report", "log.ctxrel").returncode == 0
    tab = opened.open(Path("log.ctxrel/report.html"))
    tab.click("#open-0")
    assert tab.locator(".detail mark").all_text_contents() == ["The tower is in 🏙 Paris."]
    tab.get_by_label("Judged by").select_option("faithfulness")
    tab.wait_for_function("() => document.querySelectorAll('.detail mark').length === 2")
    assert tab.locator(".detail mark").all_text_contents() == ["Bread is made of flour.", "It is old."]
    assert tab.locator(".statements .chip").all_text_contents() == ["✓ supported", "✗ not supported"]
    assert tab.locator(".evidence .text").all_text_contents() == ["Bread is made of flour.", "It is old."]

    tab.get_by_label("Status").select_option("error:refusal")
    wait_for_hits(tab, "1 of 2 records")
    tab.click(".question")
    assert tab.locator(".detail .error").first.text_content() == "the judge refused to answer"
    assert tab.locator(".detail .context").text_content() == RECORDS[1]["contexts"][0]


def test_further_opinions(opened: Browser, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A record tells who else was asked and what differs; a judge's name is text."""

    def judge(seen: Any) -> Any:  # noqa: ANN401
        return completion(json.dumps({"relevant_statements": [3] if seen.number % 2 == 0 else []}))

    server.script = judge
    write_log(RECORDS[:1])
    ctxrel("run", "log.jsonl", "--base-url", server.url, "-m", MODEL, "--repeat", "3", "--judge-also", "offline")
    rows = Path("log.ctxrel/results.jsonl")
    rows.write_text(rows.read_text().replace('"judge":"offline"', '"judge":"<img src=x>"'))
    assert ctxrel("report", "log.ctxrel").returncode == 0
    tab = opened.open(Path("log.ctxrel/report.html"))
    tab.click("#open-0")
    told = tab.locator(".opinions tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert told == [
        ["answer 2", MODEL, "0 differs", "none"],
        ["answer 3", MODEL, "1", "2"],
        ["second judge", "<img src=x>", "1", "2"],
    ]
    assert "majority 1" in tab.locator(".detail h4").first.text_content()
    assert tab.locator("main img").count() == 0
    assert "records whose 3 answers all have the same score" in tab.locator(".stability").text_content()


def test_without_the_log(opened: Browser, ctxrel: RunCommand, make_page: MakePage) -> None:
    """Where the log is gone a record opens to its relevant statements, context by context."""
    make_page(RECORDS)
    Path("log.jsonl").unlink()
    ctxrel("report", "log.ctxrel")
    tab = opened.open(Path("log.ctxrel/report.html"))
    assert "no file 'log.jsonl'" in tab.locator(".notes").text_content()
    tab.click("#open-0")
    assert tab.locator(".context").all_text_contents() == ["its text is not in the rows", "The tower is in 🏙 Paris. …"]


def test_hostile_text(opened: Browser, make_page: MakePage) -> None:
    """Text of records is text wherever it stands: none of it runs, asks for anything or makes an element."""
    records = [
        {
            "id": text,
            "question": f"word {text}",
            "answer": text,
            "contexts": [f"Word one. {text}. Last word.", text],
            "group": HOSTILE[number % 2],
        }
        for number, text in enumerate(HOSTILE * 2)
    ]
    tab = opened.open(
        make_page(records, "--with-input", "--keep", "group", "-e", "context_relevance", "-e", "faithfulness")
    )
    tab.click("#open-all")
    tab.wait_for_function("() => document.querySelectorAll('.detail').length === 14")
    for selector in ("main img", "main script", "main b", "main a[href^='javascript:']", "body > script:not([id])"):
        assert tab.locator(selector).count() == (1 if selector.startswith("body") else 0)
    shown = tab.locator(".detail .context").all_text_contents()
    for number, text in enumerate(HOSTILE):
        assert shown[2 * number + 1] == text.replace("\x00", "␀").replace("\ud800", "\ufffd")
    tab.fill("#query", "onerror=alert(2)")
    wait_for_hits(tab, "2 of 14 records")


def test_directions_and_languages(opened: Browser, make_page: MakePage) -> None:
    """Right-to-left text runs from the right, each text has its language, and Korean breaks between words."""
    tab = opened.open(make_page(RECORDS))
    tab.click("#open-all")
    tab.wait_for_function("() => document.querySelectorAll('.detail').length === 5")

    def facts(name: int) -> Any:  # noqa: ANN401
        script = "(e) => [getComputedStyle(e).direction, e.closest('[lang]').lang, getComputedStyle(e).wordBreak]"
        return tab.locator(f"#record-{name} .context .text").first.evaluate(script)

    assert facts(0) == ["ltr", "en", "normal"]
    assert facts(2) == ["ltr", "ko", "keep-all"]
    assert facts(3)[:2] == ["rtl", "he"]
    assert tab.locator("#record-3 mark").text_content() == "המגדל נבנה בשנת 1909 (tower)."
    # The first letter stands to the right of the last one.
    places = tab.locator("#record-3 mark").evaluate(
        """(mark) => [0, 20].map((at) => {
            const range = document.createRange();
            range.setStart(mark.firstChild, at);
            range.setEnd(mark.firstChild, at + 1);
            return range.getBoundingClientRect().left;
        })"""
    )
    assert places[0] > places[1]


def many(count: int) -> Iterator[bytes]:
    """Rows as a run writes them, records and all."""
    for number in range(count):
        text = f"Item {number} is a thing. It weighs {number % 97} g and costs little. " * 4
        row = {
            "index": number,
            "id": f"r-{number}",
            "evaluator": "context_relevance",
            "status": "evaluated" if number % 1000 else "error",
            "score": number % 2 if number % 1000 else None,
            "question": f"What is item {number}?",
            "relevant_statements": [text[: text.index(".") + 1]] if number % 1000 else [],
            "contexts": [
                {"relevant": True, "statements": 8, "relevant_statements": 1, "spans": [[0, text.index(".") + 1]]}
            ]
            if number % 1000
            else [],
            "model": MODEL,
            "prompt": "context_relevance@00000000",
            "repaired": False,
            "usage": {"input_tokens": 100, "output_tokens": 5, "cached_tokens": 0, "reasoning_tokens": 0},
            "error": None if number % 1000 else {"kind": "timeout", "message": "no answer"},
            "input": {"id": f"r-{number}", "question": f"What is item {number}?", "contexts": [text]},
        }
        yield json.dumps(row).encode() + b"\n"


def test_fifty_thousand_records(opened: Browser, ctxrel: RunCommand, tmp_path: Path) -> None:
    """A large run is searched in full, filtered, sorted and paged through, and only one page of it is drawn."""
    folder = tmp_path / "large.ctxrel"
    folder.mkdir()
    with (folder / "results.jsonl").open("wb") as stream:
        stream.writelines(many(50_000))
    done = ctxrel("report", folder, timeout=300)
    assert done.returncode == 0, done.stderr
    tab = opened.open(folder / "report.html")
    tab.set_default_timeout(120_000)
    assert tab.locator("#hits").text_content() == "50,000 of 50,000 records, page 1 of 1,000"
    assert tab.locator("tr.record").count() == 50
    tab.click("#last")
    assert questions(tab)[-1] == "What is item 49999?"
    tab.fill("#query", "weighs 96 costs 49,")
    tab.fill("#query", "49984 weighs")
    wait_for_hits(tab, "1 of 50,000 records")
    tab.click(".question")
    assert tab.locator(".detail mark").text_content() == "Item 49984 is a thing."
    tab.click("button[type=reset]")
    tab.get_by_label("Status").select_option("error")
    wait_for_hits(tab, "50 of 50,000 records")
    tab.click("th button[data-sort=index]")
    assert questions(tab)[0] == "What is item 49000?"


def test_by_keyboard(opened: Browser, make_page: MakePage) -> None:
    """Everything is reached and worked with Tab, Enter and letters; what changed is told."""
    tab = opened.open(make_page([{**RECORDS[0], "question": f"Where is tower {n}?"} for n in range(60)]))
    focused = "document.activeElement.id || document.activeElement.className || document.activeElement.dataset.sort"
    tab.keyboard.press("Tab")
    assert tab.evaluate(focused) == "skip"
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert tab.evaluate(focused) == "query"
    tab.keyboard.type("tower 5")
    wait_for_hits(tab, "15 of 60 records")
    for _ in range(20):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.dataset.sort") == "index":
            break
    tab.keyboard.press("Enter")
    assert tab.locator("th[aria-sort=descending]").text_content().strip() == "#"
    assert questions(tab)[0] == "Where is tower 59?"
    for _ in range(5):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.className") == "question":
            break
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#record-59")
    assert tab.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert tab.evaluate("document.activeElement.getAttribute('aria-controls')") == "record-59"
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#record-59", state="detached")


def test_link_to_a_record(opened: Browser, make_page: MakePage) -> None:
    """A record's link opens it, on whatever page of the list it is."""
    page = make_page([{**RECORDS[0], "question": f"Where is tower {n}?"} for n in range(120)])
    tab = opened.open(page, mark="#record-101")
    tab.wait_for_selector("#record-101")
    tab.wait_for_function("() => document.activeElement.id === 'open-101'")
    assert "page 3 of 3" in tab.locator("#hits").text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_rules_of_accessibility(make_page: MakePage, tmp_path: Path, scheme: str, width: int) -> None:
    """Axe finds nothing wrong, contrast included, in light and dark, wide and narrow; dark is dark."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415  # an extra

    page = make_page(RECORDS, "-e", "context_relevance", "-e", "faithfulness", "--keep", "lang", "--repeat", "2")
    with browser(tmp_path / "profile", color_scheme=scheme, viewport={"width": width, "height": 800}) as opened:
        tab = opened.open(page)
        tab.click("#open-0")
        tab.click("#open-4")
        tab.locator("details summary").first.click()
        tab.wait_for_selector("#record-4")
        found = Axe().run(tab).response["violations"]
        assert [(rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in found] == []
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        light = tab.evaluate("Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
        assert (light > 127) == (scheme == "light")


def test_print(opened: Browser, make_page: MakePage) -> None:
    """On paper the controls are gone, and opened records stay."""
    tab = opened.open(make_page(RECORDS))
    tab.click("#open-0")
    tab.wait_for_selector("#record-0")
    tab.emulate_media(media="print", color_scheme="dark")
    assert not tab.locator("#filters").is_visible()
    assert tab.locator("#record-0 mark").is_visible()
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.pdf().startswith(b"%PDF")

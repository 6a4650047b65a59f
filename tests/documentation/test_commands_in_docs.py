"""Every command in the README and the pages is one that there is, and runs unless there is a reason."""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from documentation.endpoint import reply
from documentation.shell import PAGES, ROOT, Line, calls, lines_of
from servers.batches import BatchServer
from servers.loopback import Answer
from typer.main import get_command

from ctxrel.cli.app import EXIT_GATE, EXIT_NOT_FINISHED, app, main
from ctxrel.cli.runs.batching import limits

LINES = [(str(page.relative_to(ROOT)), line) for page in PAGES for line in lines_of(page.read_text(encoding="utf-8"))]
_MODEL = re.compile(r"(?:-m|--model|--judge-also) ([\w./:-]+)")
_FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PRINTED = re.compile(r"<!-- printed -->\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_GATES = ("--fail-under", "--max-errors", "--fail-on")
_STAND_INS = {"jq": "cat"}
"""Programs that need not be on a machine, and what takes their place in a pipe."""


@pytest.fixture
def server() -> Iterator[BatchServer]:
    """An endpoint that has every model that a page names."""
    names = {"gpt-6-luna", *(name for _, line in LINES for name in _MODEL.findall(line.text))}
    with BatchServer(reply) as running:
        models = [{"id": name, "created": 1, "object": "model"} for name in sorted(names)]
        running.models = Answer(body={"object": "list", "data": models})
        yield running


@pytest.fixture
def environment(server: BatchServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The endpoint by its variables, the files that pages name, and a home of one's own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setattr(limits, "FIRST_POLL_SECONDS", 0.01)
    furnish(tmp_path)


def furnish(folder: Path) -> None:
    """A log of six records under the names that pages use, labels for it, and the samples."""
    shutil.copytree(ROOT / "sample_data", folder / "sample_data")
    lines = (ROOT / "sample_data" / "support_en.jsonl").read_text(encoding="utf-8").splitlines()[:6]
    records = [{**json.loads(line), "meta": {"wanted_tone": "formal"}} for line in lines]
    (folder / "logs").mkdir()
    for name in ("log.jsonl", "logs/monday.jsonl"):
        (folder / name).write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(records), folder / "log.parquet")
    labels = [{"id": record["id"], "label": number % 2, "human": number % 2} for number, record in enumerate(records)]
    (folder / "labels.jsonl").write_text("".join(f"{json.dumps(label)}\n" for label in labels), encoding="utf-8")
    (folder / "labels.csv").write_text("\n".join(["id,human", *(f"{each['id']},{each['human']}" for each in labels)]))


def is_recipe(page: str) -> bool:
    """Whether tests/recipes runs the page, block by block, with what it needs around."""
    return page.startswith("docs/recipes/")


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("page", sorted({page for page, line in LINES if not line.reason and not is_recipe(page)}))
def test_commands_run(
    page: str, server: BatchServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The page's commands run from top to bottom in one folder, and print what it says they do."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, content in _FILE.findall(text):
        Path(name).write_text(content, encoding="utf-8")
    for line in lines_of(text):
        if line.reason:
            continue
        code = run_line(line, server, monkeypatch)
        good = {0, *([EXIT_GATE] if any(gate in line.text for gate in _GATES) else [])}
        good |= {EXIT_NOT_FINISHED} if "--no-wait" in line.text else set()
        assert code in good, f"{page}: {line.text} ends with {code}"
    said = "".join(capfd.readouterr())
    for shown in _PRINTED.findall(text):
        assert shown in said


def run_line(line: Line, server: BatchServer, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a plain call in this process, which spares its start, and all else in a shell."""
    here = re.sub(r"(?<=-base-url )\S+", server.url, line.text)
    words = line._replace(text=here).words
    if words is None:
        return run_in_a_shell(here)
    while words and re.fullmatch(r"export|\w+=.*", words[0]):
        name, _, value = words.pop(0).partition("=")
        if value:
            monkeypatch.setenv(name, re.sub(r"\W", "x", value))
    if words[:1] == ["ctxrel"] and words[1] != "report":  # pygal leaves a finder behind that Python warns of
        return run_here(words, monkeypatch)
    return run_in_a_shell(here) if words else 0


def run_here(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def run_in_a_shell(text: str) -> int:
    stand_ins = [f"{name}() {{ {other}; }}" for name, other in _STAND_INS.items() if not shutil.which(name)]
    script = "\n".join(["set -euo pipefail", *stand_ins, text])
    return subprocess.run(["bash", "-c", script], check=False, timeout=60).returncode


@pytest.mark.parametrize("page", sorted({page for page, line in LINES if calls(line.text)}))
def test_options_exist(page: str) -> None:
    """Every call is understood by the app's own parser, run or not."""
    for call in [call for name, line in LINES if name == page for call in calls(line.text)]:
        parse("ctxrel", get_command(app), call)


def parse(name: str, command: Any, arguments: list[str]) -> None:  # noqa: ANN401  # Typer's Click is vendored and has no public types
    """Fail where an option, a value or a command is not known."""
    try:
        context = command.make_context(name, list(arguments))
    except Exception as error:  # noqa: BLE001  # whatever the parser raises
        pytest.fail(f"{name} {shlex.join(arguments)}: {error}")
    rest = [*context._protected_args, *context.args]
    if rest and hasattr(command, "commands"):
        assert rest[0] in command.commands, f"{name} {rest[0]}"
        parse(f"{name} {rest[0]}", command.commands[rest[0]], rest[1:])


def test_a_wrong_option_is_found() -> None:
    """The parser tells, so that the tests above can fail."""
    with pytest.raises(pytest.fail.Exception, match="No such option: --basse-url"):
        parse("ctxrel", get_command(app), calls("X=1 ctxrel run log.jsonl --basse-url x | jq")[0])


def test_extras_exist() -> None:
    """Every extra that is installed on a page is one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {extra for page in PAGES for extra in re.findall(r"ctxrel\[(\w+)\]", page.read_text(encoding="utf-8"))}
    assert named <= project["optional-dependencies"].keys() | {"NAME"}


def test_lines_of() -> None:
    """Comments choose what is run, continued lines are one, and what needs a shell is told."""
    page = """
<!-- before: ctxrel init -->
<!-- not run (azure): needs an account -->
```bash
# a comment
ctxrel run log.jsonl \\
    --model azure
cat log.jsonl | ctxrel run -   # a pipe
```
<!-- not run: it takes a day -->
```bash
ctxrel run log.jsonl
for n in 1 2; do
  ctxrel trend "$n"
done
```
```python
ctxrel
```
"""
    lines = lines_of(page)
    assert [line.reason for line in lines] == [None, "needs an account", None, "it takes a day"]
    assert [line.words is None for line in lines] == [False, False, True, True]
    assert shlex.join(lines[1].words or []) == "ctxrel run log.jsonl --model azure"
    assert calls(lines[3].text) == [["run", "log.jsonl"], ["trend", "$n"]]

"""What the pages in docs/ say is so."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import RunCommand, read_rows
from servers.loopback import MODEL, LoopbackServer, completion

from ctxrel.cli.commands.forms import FORMS
from ctxrel.cli.records.schemas import ROLES, Group, all_schemas
from ctxrel.cli.reports import metrics
from ctxrel.evaluators import JudgeOptions, load_evaluator
from ctxrel.evaluators import definition as definitions
from ctxrel.evaluators.decisions import asking as decisions
from ctxrel.evaluators.decisions.evaluator import load_deciding_evaluator
from ctxrel.evaluators.definition import INPUT_KINDS, built_in_names
from ctxrel.evaluators.judges import llamacpp
from ctxrel.evaluators.outputs.building import KINDS
from ctxrel.evaluators.scoring import RULES
from ctxrel.evaluators.yaml_source import Source

DOCS = Path(__file__).parent.parent / "docs"
README = (DOCS.parent / "README.md").read_text(encoding="utf-8")
EVALUATORS = (DOCS / "evaluators.md").read_text(encoding="utf-8")
LOGS = (DOCS / "logs.md").read_text(encoding="utf-8")
PYTHON = (DOCS / "python.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def first_cells(page: str, heading: str) -> list[str]:
    """The names in the first column of the table under a heading."""
    section = page.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    return [name for row in rows[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_every_page_is_in_the_index() -> None:
    """The index, of which the site makes its navigation, links each page there is."""
    pages = {*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md"), *DOCS.parent.glob("sample_data/*.md")} - {
        DOCS / "index.md"
    }
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert {(DOCS / link).resolve() for link in re.findall(r"\]\(([^):]+\.md)\)", index)} == pages


def test_python_blocks_run() -> None:
    """The page's code runs from top to bottom, and its assertions hold."""
    names: dict[str, object] = {}
    for block in blocks(PYTHON, "python"):
        exec(block, names)  # noqa: S102  # our own page
    assert "safety" in names


def test_arguments() -> None:
    """The table of arguments holds exactly those there are."""
    assert set(first_cells(PYTHON, "Arguments")) == set(JudgeOptions.__annotations__)


def test_keys_and_kinds() -> None:
    """The tables hold exactly the keys, kinds and rules there are."""
    keys = {*definitions.REQUIRED, *definitions.OPTIONAL, *definitions.EXTENDING, "extends"}
    assert set(first_cells(EVALUATORS, "Keys")) == keys
    assert set(first_cells(EVALUATORS, "Inputs")) == set(INPUT_KINDS)
    assert set(first_cells(EVALUATORS, "Outputs")) == set(KINDS)
    assert set(first_cells(EVALUATORS, "Scoring")) == {*RULES, "none"}


def test_rules_of_kinds() -> None:
    """The table of kinds names the rules that each can have."""
    section = EVALUATORS.split("\n## Outputs\n")[1].split("\n## ")[0]
    for line in [line for line in section.splitlines() if line.startswith("| `")]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for kind, rules in zip(re.findall(r"`(\w+)`", cells[0]), cells[-1].split("; ") * 2, strict=False):
            options: dict[str, object] = {"values": ["a", "b"]} if kind == "label" else {}
            build, _ = KINDS[kind]
            source = Source("x.yaml", None, {(): 1})
            found = set(build(source, ("outputs", "name"), options).rules) - {"labels"}
            assert found == set(re.findall(r"`(\w+)`", rules)), kind


def test_decisions() -> None:
    """The page's code holds, its YAML is an evaluator, and its table has the keys there are."""
    page = (DOCS / "decisions.md").read_text(encoding="utf-8")
    for block in blocks(page, "python"):
        exec(block, {})  # noqa: S102  # our own page
    (text,) = blocks(page, "yaml")
    Path("strict.yaml").write_text(text, encoding="utf-8")
    assert load_deciding_evaluator("./strict.yaml").name == "context_relevance_strict"
    assert set(first_cells(page, "In the YAML")) == {*decisions.REQUIRED, *decisions.OPTIONAL}


def test_forms() -> None:
    """The page names every form, and its line for editors is a comment that `prompts check` passes over."""
    page = (DOCS / "schemas.md").read_text(encoding="utf-8")
    named = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert re.findall(r"`(\w+)`", " ".join(named)) == [*FORMS]
    (line,) = blocks(page, "yaml")
    Path("mine.yaml").write_text(line + "extends: context_relevance\nscoring: share\n", encoding="utf-8")
    assert load_evaluator("mine.yaml").name == "mine"


def test_parameters_of_a_model_file() -> None:
    """The table holds exactly the parameters that are the server's."""
    page = (DOCS / "local-models.md").read_text(encoding="utf-8")
    told = [cells[1] for line in page.splitlines() if len(cells := line.split("|")) > 1]
    assert set(re.findall(r"`(\w+)=N`", " ".join(told))) == set(llamacpp._RANGES)


def test_options_of_the_report(ctxrel: RunCommand) -> None:
    """The table holds exactly the options of `ctxrel report`."""
    page = (DOCS / "report.md").read_text(encoding="utf-8")
    told = [cells[1] for line in page.splitlines() if len(cells := line.split("|")) > 1]
    named = set(re.findall(r"--[a-z-]+", ctxrel("report", "--help").stdout)) - {"--help", "--keep"}
    assert set(re.findall(r"--[a-z-]+", " ".join(told))) - {"---"} == named


def test_metrics() -> None:
    """The page on trust names metrics that there are, and every command that reads finished runs."""
    page = (DOCS / "trust.md").read_text(encoding="utf-8")
    assert set(re.findall(r"ctxrel_\w+", page)) <= set(metrics.HELP)
    assert set(re.findall(r"^ctxrel (\w+)", page, re.MULTILINE)) == {
        "run",
        "check",
        "compare",
        "calibrate",
        "label",
        "trend",
    }


def test_figures() -> None:
    """Every figure of the summary is in the table."""
    for name in built_in_names():
        for figures in load_evaluator(name).figures():
            for figure in figures.result() if figures else {}:
                wanted = figure.replace("precision_at", "") if figure[-1].isdigit() and figure[-1] != "1" else figure
                assert wanted.removesuffix("_10") in EVALUATORS or figure.endswith(("_counts", "_mean")), figure


def test_evaluators_in_the_readme() -> None:
    """The README's table holds the built-in evaluators and what each needs."""
    told = dict(re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|", README, re.MULTILINE))
    assert told == {name: ", ".join(load_evaluator(name).inputs) for name in built_in_names()}


def schema_table() -> str:
    """The table of docs/logs.md, as the schemas are."""
    lines = ["| `--schema` | reads | " + " | ".join(ROLES) + " |", "|---|---|" + "---|" * len(ROLES)]
    for schema in all_schemas().values():
        more = f"; mostly with `{schema.goes_with}`" if schema.goes_with else ""
        cells = [", ".join(map(schema_group, schema.fields.get(role, ()))) or "-" for role in ROLES]
        lines.append(f"| `{schema.name}` | {schema.holds}{more} | {' | '.join(cells)} |")
    return "\n".join(lines)


def schema_group(group: Group) -> str:
    return " \\| ".join(f"`{path.text}`" for path in group)


def test_schemas_in_the_table() -> None:
    """The table holds the fields of every schema, in the order in which they are tried."""
    table = schema_table()
    assert table in LOGS, f"put this into docs/logs.md:\n{table}"


def test_keys_of_inspect(ctxrel: RunCommand, write_log: Callable[..., Path]) -> None:
    """The table holds every key of the object that inspect prints."""
    path = write_log([{"question": "q?", "contexts": []}])
    keys = list(json.loads(ctxrel("inspect", path, "--json").stdout))
    assert first_cells(LOGS, "See it first") == keys


@pytest.mark.usefixtures("clean_environment")
def test_the_example_runs(
    ctxrel: RunCommand, server: LoopbackServer, write_log: Callable[..., Path], tmp_path: Path
) -> None:
    """The page's evaluator is fine and judges a log as the page's command says."""
    (text,) = blocks(EVALUATORS, "yaml")
    Path("tone.yaml").write_text(text, encoding="utf-8")
    (command,) = blocks(EVALUATORS, "bash")
    write_log([{"question": "May I?", "answer": "You may.", "meta": {"wanted_tone": "formal"}}])
    server.script = lambda _: completion(json.dumps({"fits": True, "remark": ""}))
    assert ctxrel("prompts", "check", "tone.yaml").returncode == 0
    done = ctxrel(*command.split()[1:], "--base-url", server.url, "-m", MODEL)
    assert done.returncode == 0, done.stderr
    (row,) = read_rows(tmp_path / "log.ctxrel")
    assert (row["score"], row["fits"], row["remark"]) == (1, True, "")

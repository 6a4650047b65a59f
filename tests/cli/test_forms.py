"""`ctxrel schema`: forms that say what the code does, neither less nor more."""

import copy
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pyarrow.parquet as pq
import pytest
from conftest import RunCommand, read_rows, read_summary
from contracts import check_files, check_row, form, keeper, parameters, reader
from documentation.forms import pages
from hypothesis import given
from hypothesis import strategies as st

from ctxrel.cli.commands.config import long_name, options_of, read_config
from ctxrel.cli.commands.forms import FORMS
from ctxrel.cli.commands.init import config_text
from ctxrel.evaluators.costs.price_list import read_prices
from ctxrel.evaluators.definition import built_in_names, built_in_text, check_definition
from ctxrel.evaluators.errors import DefinitionError, UsageError
from ctxrel.evaluators.evaluator import Evaluator
from ctxrel.evaluators.yaml_source import Place, Source, parse_yaml

ROOT = Path(__file__).parent.parent.parent
STRUCTURAL = re.compile(
    r"unknown k|the key '|expected |\S+ is none of: |an (in|out)put cannot be called|the name '|the request parameter|"
    r"a label needs|the instructions are empty|the input |\S+ would change the request|the predicate is empty"
)
"""Refusals of `prompts check` for which nothing has to be looked up elsewhere in the file."""


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_schemas(name: str) -> None:
    """Each is a JSON Schema of 2020-12 that names itself and its version."""
    schema = form(name)
    jsonschema_rs.meta.validate(schema)
    assert schema["$id"] == f"urn:ctxrel:schema:1:{name}"


@pytest.mark.parametrize(("path", "text"), [*pages()], ids=lambda given: given.name if isinstance(given, Path) else "")
def test_published(path: Path, text: str) -> None:
    """What stands in docs/schema and docs/reference is what the code says; to write it anew: python tests/documentation/reference.py."""
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", FORMS)
def test_every_key_is_told(name: str) -> None:
    """Nothing in a form is without a sentence, but for entries of lists and what only narrows a key that has one."""

    def untold(schema: Any, path: str) -> Iterator[str]:  # noqa: ANN401  # any part of a schema
        for key, part in schema.get("properties", {}).items():
            if isinstance(part, dict):
                yield from () if part.get("description") else [f"{path}.{key}"]
                yield from untold(part, f"{path}.{key}")
        for part in (schema.get("items"), schema.get("additionalProperties")):
            if isinstance(part, dict):
                yield from untold(part, f"{path}[]")

    assert [*untold(form(name), name)] == []


def test_list_and_print(ctxrel: RunCommand) -> None:
    """Without a name the forms are listed, with one it is printed as it is published."""
    listed = ctxrel("schema")
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == [*FORMS]
    printed = ctxrel("schema", "row")
    assert json.loads(printed.stdout) == json.loads((ROOT / "docs/schema/row.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["schema", "rows"], "did you mean 'row'?"),
        (["schema", "ragas"], "the fields of such logs: ctxrel schemas ragas"),
        (["schemas", "summary"], "the form of that file of ctxrel's: ctxrel schema summary"),
    ],
    ids=lambda given: given[0] + " " + given[1] if isinstance(given, list) else "",
)
def test_the_other_command(ctxrel: RunCommand, arguments: list[str], hint: str) -> None:
    """Who means schemas of logs, or schemas of files, is told the command for it."""
    done = ctxrel(*arguments)
    assert done.returncode == 2
    assert hint in done.stderr


def test_a_reader_takes_more(ctxrel: RunCommand, tmp_path: Path) -> None:
    """A key that a later version adds breaks no reader; these tests see it."""
    ctxrel("run", ROOT / "sample_data/support_en.jsonl", "-m", "offline", "--limit", "1", "-o", "out")
    (row,), summary = read_rows(tmp_path / "out"), read_summary(tmp_path / "out")
    check_row(row)
    row["usage"]["more"] = summary["evaluators"]["context_relevance"]["more"] = 1
    assert reader("row").is_valid(row)
    assert reader("summary").is_valid(summary)
    assert not keeper("row").is_valid(row)
    assert not keeper("summary").is_valid(summary)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "error"},
        {"status": "error", "score": 1, "error": {"kind": "refusal", "message": "no"}},
        {"error": {"kind": "refusal", "message": "no"}},
        {"status": "error", "score": None, "error": {"kind": "odd", "message": "no"}},
        {"requests": 1},
        {"id": 7},
        {"not a name": 1},
    ],
    ids=str,
)
def test_rows_that_are_none(changes: dict[str, object]) -> None:
    """A failure is no score, kinds of failures are a closed list, and ids are text."""
    usage = dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"), 0)
    row: dict[str, object] = {
        "index": 0, "id": "a", "evaluator": "e", "status": "evaluated", "score": 1, "question": "q?", "model": None,
        "prompt": "e@1", "repaired": False, "usage": usage, "cost": None, "error": None,
    }  # fmt: skip
    assert reader("row").is_valid(row)
    assert not reader("row").is_valid(row | changes)


def test_tables_name_the_version(ctxrel: RunCommand, tmp_path: Path) -> None:
    """A Parquet file of results says of which version its form is, as the summary does for both."""
    ctxrel("run", ROOT / "sample_data/support_en.jsonl", "-m", "offline", "-o", "out", "--format", "parquet")
    metadata = pq.read_schema(tmp_path / "out" / "results.parquet").metadata
    assert int(metadata[b"ctxrel.schema"]) == read_summary(tmp_path / "out")["schema"] == 1


@pytest.mark.parametrize("column", ["model", "score"])
def test_files_are_looked_at(tmp_path: Path, column: str) -> None:
    """The check that runs behind every test finds a row that lacks a column."""
    row = {name: None for name in form("row")["required"] if name != column}
    (tmp_path / "kept").mkdir()
    path = tmp_path / "kept" / "results.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    check_files(tmp_path)  # one that no run has written
    path.chmod(0o600)
    with pytest.raises(jsonschema_rs.ValidationError):
        check_files(tmp_path)
    path.unlink()


def refusal(source: Source) -> DefinitionError | None:
    """What `prompts check` says of an evaluator."""
    try:
        Evaluator(check_definition(source, default_name="x"))
    except DefinitionError as error:
        return error
    return None


def places(value: object, place: Place = ()) -> Iterator[Place]:
    """Of everything in a value."""
    yield place
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from places(part, (*place, key))


VALUES: st.SearchStrategy[object] = st.sampled_from(
    [
        None, True, 0, 3, -1.5, "", "x", "id", "any", "label", "contexts", "score", "{{output_format}}", [], ["x"], ["x", "x"],
        ["question", "contexts"], [0, 1], {}, {"x": 1}, {"x": "text"}, {"x": {}}, {"kind": "text"}, {"kind": "label"},
        {"any": "x"}, {"kind": "number", "range": [0]}, {"temperature": 0}, {"threshold": 2},
    ]
).map(copy.deepcopy)  # fmt: skip
KEYS = st.sampled_from(
    [
        "x",
        "id",
        "name",
        "extends",
        "scoring",
        "kind",
        "report",
        "range",
        "values",
        "model",
        "contexts",
        "reason",
        "threshold",
    ]
)


@st.composite
def slips(draw: st.DrawFn) -> dict[str, Any]:
    """A built-in evaluator with one slip in it, or two."""
    text = built_in_text(draw(st.sampled_from(built_in_names())))
    value: Any = copy.deepcopy(parse_yaml(text, "x.yaml").value)
    for _ in range(draw(st.integers(1, 2))):
        *above, last = draw(st.sampled_from([place for place in places(value) if place]))
        parent = value
        for step in above:
            parent = parent[step]
        way = draw(st.sampled_from(["leave out", "replace", "rename", "add"]))
        if way == "leave out":
            del parent[last]
        elif way == "replace":
            parent[last] = draw(VALUES)
        elif isinstance(parent, dict):
            parent[draw(KEYS)] = parent.pop(last) if way == "rename" else draw(VALUES)
    return dict(value)


@given(slips())
def test_form_and_check_agree(value: dict[str, Any]) -> None:
    """What the form of an evaluator refuses `prompts check` refuses, and so the other way where it is about structure."""
    lines = {place: number for number, place in enumerate(places(value), start=1)}
    told = refusal(Source("x.yaml", value, lines))
    taken = reader("evaluator").is_valid(value)
    if told is None:
        assert taken
        return
    number, message = str(told).removeprefix("x.yaml:").split(": ", maxsplit=1)
    place = next(place for place, line in lines.items() if line == int(number))
    elsewhere = (place[:1] == ("examples",) and len(place) > 2) or place[:2] == ("decisions", "predicates")
    if STRUCTURAL.match(message) and not elsewhere:
        assert not taken, told


@pytest.mark.parametrize("name", built_in_names())
def test_built_in_evaluators(name: str) -> None:
    """What comes along has the form."""
    reader("evaluator").validate(parse_yaml(built_in_text(name), name).value)


def test_config_of_init() -> None:
    """The file that `ctxrel init` writes has the form, also with every default in force."""
    text = config_text(parameters())
    reader("config").validate(tomllib.loads(text))
    known = [long_name(option) for option in options_of(parameters()) if option.default is not None]
    set_ones = re.sub(rf"(?m)^# ((?:{'|'.join(known)}) = )", r"\1", text)
    found = tomllib.loads(set_ones)
    assert found["run"].keys() == {*known}
    reader("config").validate(found)


@pytest.mark.parametrize(
    "line",
    [
        'model = "m"', "model = 3", 'modle = "m"', "concurrency = 0", "concurrency = 4", "concurrency = 1.5",
        'where = "lang=ko"', 'where = ["lang=ko"]', "where = [1]", 'api = "decisions"', 'api = "chats"', "explain = true",
        'explain = "yes"', "rpm = 5", "rpm = 0.5", "max-cost = true", "repeat = 21", 'store = "s.sqlite"', 'config = "x"',
    ],
)  # fmt: skip
def test_config_form_and_reader_agree(tmp_path: Path, line: str) -> None:
    """A config file is taken by its form where it is taken by a run."""
    path = tmp_path / "ctxrel.toml"
    path.write_text(f"[run]\n{line}\n", encoding="utf-8")
    try:
        read_config(path, parameters())
        taken = True
    except UsageError:
        taken = False
    assert reader("config").is_valid(tomllib.loads(path.read_text(encoding="utf-8"))) == taken


@pytest.mark.parametrize(
    "prices",
    [
        {"localhost": {"models": {"m": {"input": 0, "output": 0}}}},
        {"localhost": {"models": {"m": {"input": 0}}}},
        {"localhost": {"models": {"m": {"input": -1, "output": 0}}}},
        {"localhost": {"models": {"m": {"input": "1", "output": 0}}}},
        {"localhost": {"models": {"m": {"input": 1, "output": 0, "price": 1}}}},
        {"localhost": {"batch": 2, "models": {}}},
        {"localhost": {"batch": 0.5, "checked": "2026-11-30", "models": {}}},
        {"localhost": {"checked": "in May", "models": {}}},
        {"localhost": {}},
        {"localhost": {"models": []}},
        [],
    ],
    ids=json.dumps,
)
def test_prices_form_and_reader_agree(tmp_path: Path, prices: object) -> None:
    """A price list is taken by its form where it is taken by a run."""
    path = tmp_path / "prices.yml"
    path.write_text(json.dumps(prices), encoding="utf-8")
    try:
        read_prices(path)
        taken = True
    except DefinitionError:
        taken = False
    assert reader("prices").is_valid(prices) == taken


def test_own_prices() -> None:
    """The price list that comes along has the form."""
    text = (ROOT / "evaluators/costs/prices.yaml").read_text(encoding="utf-8")
    reader("prices").validate(parse_yaml(text, "prices.yaml").value)

"""Paths into a record: keys with dots, items of lists in lists, JSON inside of texts."""

from pathlib import Path

import pytest
from conftest import RunCommand, read_rows
from hypothesis import given
from hypothesis import strategies as st

from ctxrel.cli.records.paths import FieldPath, Missing
from ctxrel.cli.records.texts import Unfit, contexts_of
from ctxrel.cli.records.where import parse_condition
from ctxrel.evaluators.errors import UsageError
from ctxrel.evaluators.jsontext import dumps_anything

RECORD: dict[str, object] = {
    "attributes": {"ai.query.text": "q", "ai": {"query": {"text": "nested"}}, "k[0]": 1, 'in "quotes"': 2},
    "turns": [{"output": {"results": [{"text": "a"}, {"text": "b"}]}}, {"output": {"results": [{"text": "c"}]}}],
    "spans": [{"contexts": ["a", "b"]}, {"contexts": []}, {"contexts": ["c"]}],
    "outputs": '{"documents": [{"page_content": "a"}, {"page_content": "b"}]}',
    "list": "[1, 2]",
    "text": "{no JSON",
    "a.b": {"c": 3},
    "Question Type": "x",
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ('attributes."ai.query.text"', "q"),
        ("attributes.ai.query.text", "q"),
        ('attributes."ai"."query"."text"', "nested"),
        ("attributes.ai.query", {"text": "nested"}),
        ('"attributes"."k[0]"', 1),
        ('attributes."in \\"quotes\\""', 2),
        ('attributes.in "quotes"', 2),
        ('"a.b".c', 3),
        ("a.b.c", 3),
        ("Question Type", "x"),
        ("turns[].output.results[].text", ["a", "b", "c"]),
        ("turns[].output.results[-1].text", ["b", "c"]),
        ("turns[-1].output.results[].text", ["c"]),
        ("turns[].output.results", [[{"text": "a"}, {"text": "b"}], [{"text": "c"}]]),
        ("spans[].contexts[]", ["a", "b", "c"]),
        ("spans[].contexts", [["a", "b"], [], ["c"]]),
        ("outputs.documents[].page_content", ["a", "b"]),
        ("list[1]", 2),
    ],
)
def test_value(path: str, value: object) -> None:
    """What stands at a path: a key with the dots comes first, several [] give one flat list, JSON in a text is read."""
    assert FieldPath(path).get(RECORD) == value


@pytest.mark.parametrize(
    "path", ['"attributes.ai"', 'attributes."ai.query".text', '"a"."b"', "text.no", "outputs.documents[2]", "spans[].x"]
)
def test_missing(path: str) -> None:
    """A quoted key is one key and no part of another; a text that spells nothing has no fields."""
    with pytest.raises(Missing):
        FieldPath(path).get(RECORD)


@pytest.mark.parametrize("path", ['"', 'a."b', '"a"b', 'a."b"c', '["a.b"]', 'a["b"]', '""a""'])
def test_no_path(path: str) -> None:
    """Quotes stand around a whole key."""
    with pytest.raises(UsageError, match=r'is no field path; write it like .* or meta\."key\.with\.dots"'):
        FieldPath(path)


def test_bad_escape() -> None:
    """Inside of the quotes stands what stands in a JSON text."""
    with pytest.raises(UsageError, match=r"is no field path: .* is not valid JSON"):
        FieldPath('meta."a\\x"')


@given(st.text().filter(lambda key: key.isprintable()), st.text())
def test_any_key(key: str, other: str) -> None:
    """Every key can be named in quotes."""
    path = FieldPath(f"meta.{dumps_anything(key).decode()}")
    assert path.get({"meta": {other: 1} | {key: 2}}) == 2
    assert path.top == "meta"


def test_condition_on_a_quoted_key() -> None:
    """A quoted key may hold the signs of a condition."""
    condition = parse_condition('meta."a=b.c" >= 3')
    assert (condition.path.text, condition.sign, condition.number) == ('meta."a=b.c"', ">=", 3)
    assert condition.holds({"meta": {"a=b.c": 4}})


def test_lists_in_a_list() -> None:
    """Who leaves out the last [] is told so."""
    with pytest.raises(Unfit, match=r"^\[0\] is a list, not a text; a further \[\] at the end of its path goes over"):
        contexts_of([["a"], ["b"]])


def test_run(ctxrel: RunCommand) -> None:
    """The options take such paths: of keys with dots, in tables whose cells hold JSON, and to carry fields along."""
    Path("log.csv").write_text(
        'id,data,tags\n1,"{""ai.query"": ""Who made Python?"", ""hits"": [{""text"": ""Guido made Python.""}]}",x\n'
    )
    paths = ("--question-field", 'data."ai.query"', "--contexts-field", "data.hits[].text", "--keep", 'data."ai.query"')
    assert ctxrel("run", "log.csv", "-m", "offline", *paths).returncode == 0
    (row,) = read_rows(Path("log.ctxrel"))
    assert (row["score"], row["relevant_statements"]) == (1, ["Guido made Python."])
    assert row["kept"] == {'data."ai.query"': "Who made Python?"}

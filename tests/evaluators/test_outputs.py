"""Definitions in YAML: the score and columns that each kind and rule give, and what is said of a wrong one."""

import json
import math
from pathlib import Path
from typing import Any

import orjson
import pytest

from ctxrel.evaluators import Evaluator, Record, load_evaluator
from ctxrel.evaluators.definition import check_definition, load_definition
from ctxrel.evaluators.errors import DefinitionError, Failure, FailureKind
from ctxrel.evaluators.evaluator import Evaluation
from ctxrel.evaluators.outputs.building import KINDS
from ctxrel.evaluators.outputs.output import Range
from ctxrel.evaluators.replies import Reply, Usage
from ctxrel.evaluators.scoring import RULES
from ctxrel.evaluators.yaml_source import parse_yaml

RECORD = Record(
    index=0,
    id="r",
    where="log:1",
    question="Who wrote it?",
    contexts=("Ada wrote it. It is long.", "Bob read it."),
    answer="Ada wrote it.",
)
HEAD = "instructions: 'Judge. {{output_format}}'\ninputs: [question, contexts, answer]\n"
UNIT = Range(0, 1)
UNBOUNDED = Range(None, None)
RELEVANT = {"relevant": True, "statements": 2, "relevant_statements": 1}
CITED = [
    {**RELEVANT, "spans": [(0, 13)]},
    {"relevant": False, "statements": 1, "relevant_statements": 0, "spans": []},
]


def evaluator_of(text: str) -> Evaluator:
    """The evaluator of a YAML text."""
    return Evaluator(check_definition(parse_yaml(text, "x.yaml"), default_name="x"))


def read(text: str, reply: dict[str, Any]) -> Evaluation:
    """What comes of a reply to the record."""
    evaluator = evaluator_of(text)
    task = evaluator.task(RECORD)
    answer = Reply(text=json.dumps(reply), finish_reason="stop", model=None, usage=Usage())
    return evaluator.evaluate(task, task.read(answer))


LABEL = "{kind: label, values: [good, fair, bad]}"
CLAIMS = {"s": ["Ada wrote it.", "Bob wrote it."], "evidence": [[1], []], "statement_scores": [1, 0]}
EVIDENCE = [[{"context": 0, "sentence": 1, "span": (0, 13)}], []]
QUOTED = {"located": True, "context": 0, "span": (0, 13), "similarity": 1.0}
GOOD = [
    pytest.param("{x: citations}", "any", {"x": [1]}, 1, {"x": ["Ada wrote it."], "contexts": CITED}, UNIT, id="citations any"),
    pytest.param("{x: citations}", "share", {"x": [1]}, 1 / 3, {"x": ["Ada wrote it."], "contexts": CITED}, UNIT, id="citations share"),
    pytest.param("{x: {kind: citations, report: relevant}}", "any", {"x": [1]}, 1, {"x": ["Ada wrote it."], "contexts": CITED}, UNIT, id="citations, relevant ones"),
    pytest.param(
        "{x: {kind: citations, report: all}}", "share", {"x": [1]}, 1 / 3,
        {"statements": ["Ada wrote it.", "It is long.", "Bob read it."], "statement_scores": [1, 0, 0], "contexts": CITED},
        UNIT, id="citations, all of them",
    ),
    pytest.param("{x: citations}", "none", {"x": [1]}, None, {"x": ["Ada wrote it."], "contexts": CITED}, UNBOUNDED, id="citations without a score"),
    pytest.param("{x: quotes}", "any", {"x": ["ada wrote it"]}, 1, {"x": ["ada wrote it"], "locations": [QUOTED | {"span": (0, 12)}], "contexts": [CITED[0] | {"spans": [(0, 13)]}, CITED[1]]}, UNIT, id="quotes any"),
    pytest.param("{x: quotes}", "share", {"x": ["Ada wrote it.", "Ada wrote it."]}, 1 / 3, {"x": ["Ada wrote it."] * 2, "locations": [QUOTED] * 2, "contexts": CITED}, UNIT, id="quotes share"),
    pytest.param("{s: claims}", "mean", CLAIMS, 0.5, {**CLAIMS, "evidence": EVIDENCE}, UNIT, id="claims mean"),
    pytest.param("{s: claims}", "share", CLAIMS, 0.5, {**CLAIMS, "evidence": EVIDENCE}, UNIT, id="claims share"),
    pytest.param("{s: claims}", "any", CLAIMS, 1, {**CLAIMS, "evidence": EVIDENCE}, UNIT, id="claims any"),
    pytest.param(f"{{x: {LABEL}}}", "{good: 1, fair: 0.25, bad: 0}", {"x": "fair"}, 0.25, {"x": "fair"}, UNIT, id="label"),
    pytest.param(f"{{x: {LABEL}}}", "{bad: -2, fair: 3, good: 10}", {"x": "bad"}, -2, {"x": "bad"}, Range(-2, 10), id="label beyond 0 to 1"),
    pytest.param(f"{{x: {LABEL}}}", "none", {"x": "bad"}, None, {"x": "bad"}, UNBOUNDED, id="label without a score"),
    pytest.param(f"{{x: text, y: {{kind: label, values: [a, b]}}, z: {LABEL}}}", "{good: 1, fair: 0.5, bad: 0}", {"x": "", "y": "a", "z": "good"}, 1, {"x": "", "y": "a", "z": "good"}, UNIT, id="label beside others"),
    pytest.param("{x: {kind: label, values: [any, mean]}}", "{any: 0, mean: 1}", {"x": "mean"}, 1, {"x": "mean"}, UNIT, id="labels called like rules"),
    pytest.param("{x: boolean}", "value", {"x": True}, 1, {"x": True}, UNIT, id="boolean, row has it too"),
    pytest.param("{x: boolean}", "none", {"x": "0"}, None, {"x": False}, UNBOUNDED, id="boolean without a score"),
    pytest.param("{x: booleans}", "any", {"x": [False, True]}, 1, {"x": [False, True]}, UNIT, id="booleans any"),
    pytest.param("{x: booleans}", "any", {"x": [0, "0"]}, 0, {"x": [False, False]}, UNIT, id="booleans none of them"),
    pytest.param("{x: booleans}", "share", {"x": [1, 0, 0]}, 1 / 3, {"x": [True, False, False]}, UNIT, id="booleans share"),
    pytest.param("{x: booleans}", "mean", {"x": []}, 0, {"x": []}, UNIT, id="booleans without any"),
    pytest.param("{x: {kind: integer, range: [1, 5]}}", "value", {"x": 4.0}, 4, {"x": 4}, Range(1, 5), id="integer"),
    pytest.param("{x: integer}", "value", {"x": -7}, -7, {"x": -7}, UNBOUNDED, id="integer without a range"),
    pytest.param("{x: {kind: integers, range: [0, 10]}}", "mean", {"x": [1, 2]}, 1.5, {"x": [1, 2]}, Range(0, 10), id="integers"),
    pytest.param("{x: {kind: number, range: [0, 1]}}", "value", {"x": 0.25}, 0.25, {"x": 0.25}, UNIT, id="number"),
    pytest.param("{x: {kind: number, range: [-0.5, 0.5]}}", "value", {"x": -0.5}, -0.5, {"x": -0.5}, Range(-0.5, 0.5), id="number at the end of its range"),
    pytest.param("{x: {kind: numbers, range: [0, 1]}}", "mean", {"x": [0.5, 1]}, 0.75, {"x": [0.5, 1]}, UNIT, id="numbers"),
    pytest.param("{x: numbers}", "mean", {"x": []}, None, {"x": []}, UNBOUNDED, id="no numbers"),
    pytest.param("{x: text}", "none", {"x": ""}, None, {"x": ""}, UNBOUNDED, id="text"),
    pytest.param("{x: texts}", "", {"x": ["a", "b"]}, None, {"x": ["a", "b"]}, UNBOUNDED, id="texts, scoring left empty"),
    pytest.param("{x: json}", "none", {"x": {"a": [None, 1.5]}}, None, {"x": {"a": [None, 1.5]}}, UNBOUNDED, id="json"),
    pytest.param("{score: boolean, why: text}", "{value: score}", {"score": False, "why": "b"}, 0, {"why": "b"}, UNIT, id="score is the row's"),
    pytest.param("{why: text, score: {kind: number, range: [0, 4]}}", "value", {"score": 2.5, "why": ""}, 2.5, {"why": ""}, Range(0, 4), id="score beside a text"),
    pytest.param("{a: integers, b: integers}", "{mean: b}", {"a": [1], "b": [2, 4]}, 3, {"a": [1], "b": [2, 4]}, UNBOUNDED, id="which one is said"),
    pytest.param("{c: citations, n: {kind: integer, range: [0, 3]}}", "{any: c}", {"c": [], "n": 3}, 0, {"c": [], "contexts": [CITED[1] | {"statements": 2}, CITED[1]], "n": 3}, UNIT, id="citations beside a value"),
]  # fmt: skip


@pytest.mark.parametrize(("outputs", "scoring", "reply", "score", "columns", "bounds"), GOOD)
def test_good(
    outputs: str,
    scoring: str,
    reply: dict[str, Any],
    score: float | None,
    columns: dict[str, object],
    bounds: Range,
) -> None:
    """Score, columns and range of the score that a definition gives."""
    text = f"{HEAD}outputs: {outputs}\nscoring: {scoring}\n"
    evaluation = read(text, reply)
    assert evaluation.score == (None if score is None else pytest.approx(score))
    assert evaluation.outputs == columns
    evaluator = evaluator_of(text)
    assert evaluator.range == bounds
    assert evaluator.empty_outputs.keys() == columns.keys()


def test_every_kind_and_rule_is_in_the_table() -> None:
    """A new kind or rule needs a line."""
    evaluators = [evaluator_of(f"{HEAD}outputs: {case.values[0]}\nscoring: {case.values[1]}\n") for case in GOOD]
    assert {output.kind for evaluator in evaluators for output in evaluator.outputs} == set(KINDS)
    assert {evaluator.definition.scoring.rule for evaluator in evaluators} == {*RULES, "labels", "none"}


@pytest.mark.parametrize(
    ("outputs", "reply", "message"),
    [
        pytest.param("x: {kind: integer, range: [1, 5]}", 6, "'x' is outside of 1 to 5", id="too high"),
        pytest.param("x: {kind: integer, range: [1, 5]}", 0, "'x' is outside of 1 to 5", id="too low"),
        pytest.param("x: integer", 1.5, "'x' holds something that is no whole number", id="fraction"),
        pytest.param("x: number", "1", "'x' holds something that is no number", id="text for a number"),
        pytest.param("x: number", True, "'x' holds something that is no number", id="boolean for a number"),
        pytest.param("x: {kind: numbers, range: [0, 1]}", [0.5, 1.5], "'x' is outside of 0 to 1", id="one too high"),
        pytest.param("x: integers", 1, "'x' is no list", id="one for several"),
        pytest.param("x: boolean", "yes", "'x' holds something that is neither 1 nor 0", id="yes"),
        pytest.param("x: booleans", [True, None], "'x' holds something that is neither 1 nor 0", id="null"),
        pytest.param("x: text", ["a"], "'x' is no text", id="list for a text"),
        pytest.param("x: texts", ["a", ""], "'x' holds something that is no text", id="blank text"),
        pytest.param("x: {kind: label, values: [a, b]}", "c", "'x' is none of a, b", id="label"),
        pytest.param("x: {kind: label, values: [a, b]}", ["a"], "'x' is none of a, b", id="list of a label"),
        pytest.param("x: citations", [4], "there is no statement 4", id="sentence"),
        pytest.param("x: quotes", "Ada wrote it.", "'x' is no list", id="one quote"),
    ],
)
def test_unfit_reply(outputs: str, reply: object, message: str) -> None:
    """A reply that does not fit says what does not."""
    with pytest.raises(Failure) as raised:
        read(f"{HEAD}outputs: {{{outputs}}}\nscoring: none\n", {"x": reply})
    assert (raised.value.kind, raised.value.message) == (FailureKind.INVALID_REPLY, message)


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("{kind: integer, range: [1, 3]}", {"type": "integer", "enum": [1, 2, 3]}),
        ("{kind: integer, range: [0.5, 2.5]}", {"type": "integer", "enum": [1, 2]}),
        ("{kind: integer, range: [0, 100]}", {"type": "integer"}),
        ("integer", {"type": "integer"}),
        ("{kind: number, range: [0, 1]}", {"type": "number"}),
        ("{kind: integers, range: [0, 1]}", {"type": "array", "items": {"type": "integer", "enum": [0, 1]}}),
        ("{kind: label, values: [a, b]}", {"type": "string", "enum": ["a", "b"]}),
        ("boolean", {"type": "boolean"}),
        ("texts", {"type": "array", "items": {"type": "string"}}),
    ],
)
def test_schema(kind: str, schema: dict[str, object]) -> None:
    """What the endpoint is asked for."""
    static = evaluator_of(f"{HEAD}outputs: {{x: {kind}}}\nscoring: none\n").static
    assert static.schema == {
        "type": "object",
        "properties": {"x": schema},
        "required": ["x"],
        "additionalProperties": False,
    }


def test_no_schema_for_any_value() -> None:
    """Strict schemas cannot say 'anything'."""
    assert evaluator_of(f"{HEAD}outputs: {{x: json, y: text}}\nscoring: none\n").static.schema is None


QUESTION = "instructions: 'Judge. {{output_format}}'\ninputs: [question]\n"
EXAMPLE = "instructions: 'Judge. {{output_format}} {{examples}}'\ninputs: [question, contexts, answer]\n"
INPUTS = '  - inputs: {question: "q?", contexts: ["A one. B two."], answer: "a"}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # Outputs.
        pytest.param(f"{HEAD}outputs:\n  x: citation\nscoring: any\n", "x.yaml:4: unknown kind 'citation'; did you mean 'citations'?", id="unknown kind"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: zzz\nscoring: any\n", "x.yaml:5: unknown kind 'zzz'; known are citations, quotes, claims, label", id="unknown kind in full"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: [text]\nscoring: any\n", "x.yaml:5: unknown kind ['text']; did you mean 'text'?", id="kind is a list"),
        pytest.param(f"{HEAD}outputs:\n  x:\nscoring: any\n", "x.yaml:4: expected a kind (citations, quotes,", id="no kind"),
        pytest.param(f"{HEAD}outputs:\n  x: {{report: all}}\nscoring: any\n", "x.yaml:4: expected a kind (citations, quotes,", id="options without a kind"),
        pytest.param(f"{HEAD}outputs: citations\nscoring: any\n", "x.yaml:3: expected names and kinds, as 'relevant_statements: citations', found a text", id="no name"),
        pytest.param(f"{HEAD}outputs: {{}}\nscoring: any\n", "x.yaml:3: expected names and kinds, as 'relevant_statements: citations', found nothing in it", id="no outputs"),
        pytest.param(f"{HEAD}outputs:\n  x: {{kind: text, range: [0, 1]}}\nscoring: none\n", "x.yaml:4: unknown key 'range'; ", id="range of a text"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: citations\n    report: most\nscoring: any\n", "x.yaml:6: 'most' is none of: relevant, all", id="report"),
        pytest.param(f"{HEAD}outputs:\n  x y: text\nscoring: none\n", "x.yaml:4: an output cannot be called 'x y'; choose letters, digits and '_'", id="name with a space"),
        pytest.param(f"{HEAD}outputs:\n  1: text\nscoring: none\n", "x.yaml:4: an output cannot be called '1'; choose letters, digits and '_'", id="name is a number"),
        pytest.param(f"{HEAD}outputs:\n  a: text\n  usage: text\nscoring: none\n", "x.yaml:5: an output cannot be called 'usage': every row has a column of that name", id="called like a row's key"),
        pytest.param(f"{HEAD}outputs:\n  contexts: texts\nscoring: none\n", "x.yaml:4: an output cannot be called 'contexts': every row has", id="called like the row's contexts"),
        pytest.param(f"{HEAD}outputs:\n  score: text\nscoring: none\n", "x.yaml:4: an output called 'score' has to be the score: scoring: {value: score}", id="score that is none"),
        pytest.param(f"{HEAD}outputs:\n  score: booleans\nscoring: mean\n", "x.yaml:4: an output called 'score' has to be the score: scoring: {value: score}", id="score that is a list"),
        pytest.param(f"{HEAD}outputs:\n  a: integer\n  score: integer\nscoring: {{value: a}}\n", "x.yaml:5: an output called 'score' has to be the score: scoring: {value: score}", id="score beside the score"),
        pytest.param(f"{HEAD}outputs:\n  x: quotes\n  locations: texts\nscoring: any\n", "x.yaml:5: 'locations' and 'x' both fill 'locations'", id="locations twice"),
        pytest.param(f"{HEAD}outputs:\n  evidence: text\n  s: claims\nscoring: mean\n", "x.yaml:5: 's' and 'evidence' both fill 'evidence'", id="evidence twice"),
        pytest.param(f"{HEAD}outputs:\n  x: {{kind: citations, report: all}}\n  statements: text\nscoring: any\n", "x.yaml:5: 'statements' and 'x' both fill 'statements'", id="statements twice"),
        pytest.param(f"{HEAD}outputs:\n  x: citations\n  y: quotes\nscoring: none\n", "x.yaml:5: an evaluator has one output of the kinds citations, quotes, claims", id="citations and quotes"),
        pytest.param(f"{QUESTION}outputs:\n  x: citations\nscoring: any\n", "x.yaml:4: the kind 'citations' needs the input 'contexts'", id="citations without contexts"),
        pytest.param(f"{QUESTION}outputs:\n  x: quotes\nscoring: any\n", "x.yaml:4: the kind 'quotes' needs the input 'contexts'", id="quotes without contexts"),
        pytest.param(f"{QUESTION.replace(']', ', contexts]')}outputs:\n  x: claims\nscoring: mean\n", "x.yaml:4: the kind 'claims' needs the input 'answer'", id="claims without an answer"),
        pytest.param(f"{QUESTION.replace(']', ', answer]')}outputs:\n  x: claims\nscoring: mean\n", "x.yaml:4: the kind 'claims' needs the input 'contexts'", id="claims without contexts"),
        # Labels and ranges.
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: label\n    values: [a]\nscoring: none\n", "x.yaml:6: a label needs two values or more, each once", id="one label"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: label\n    values: [a, b, a]\nscoring: none\n", "x.yaml:6: a label needs two values or more, each once", id="label twice"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: label\n    values:\n      - good\n      - no\nscoring: none\n", "x.yaml:8: expected a text, found False (YAML reads yes, no, on and off so); put it in quotes", id="label that YAML reads as false"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: label\n    values: a\nscoring: none\n", "x.yaml:6: expected a list of texts, found a text", id="labels are a text"),
        pytest.param(f"{HEAD}outputs:\n  x: label\nscoring: none\n", "x.yaml:4: a label needs its values", id="no labels"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: integer\n    range: [5, 1]\nscoring: value\n", "x.yaml:6: the lowest number 5 is not below the highest 1", id="range upside down"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: integer\n    range: [1, 1]\nscoring: value\n", "x.yaml:6: the lowest number 1 is not below the highest 1", id="empty range"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: number\n    range: [1, 2, 3]\nscoring: value\n", "x.yaml:6: expected the lowest and the highest number, as [0, 1], found [1, 2, 3]", id="three ends"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: number\n    range: 5\nscoring: value\n", "x.yaml:6: expected the lowest and the highest number, as [0, 1], found 5", id="one end"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: number\n    range: [0, yes]\nscoring: value\n", "x.yaml:6: expected a number, found True", id="end is true"),
        pytest.param(f"{HEAD}outputs:\n  x:\n    kind: number\n    range: [0, .inf]\nscoring: value\n", "x.yaml:6: '.inf' is read as float; put it in quotes", id="end is infinite"),
        # Scoring.
        pytest.param(f"{HEAD}outputs: {{x: text}}\nscoring: any\n", "x.yaml:4: the rule 'any' fits no output: x (text) takes none", id="rule fits none"),
        pytest.param(f"{HEAD}outputs: {{x: citations, y: boolean}}\nscoring: mean\n", "x.yaml:4: the rule 'mean' fits no output: x (citations) takes any, share, none; y (boolean) takes value, none", id="rule fits none of several"),
        pytest.param(f"{HEAD}outputs: {{x: {LABEL}}}\nscoring: value\n", "x.yaml:4: the rule 'value' fits no output: x (label) takes a score for each label, none", id="rule for a label"),
        pytest.param(f"{HEAD}outputs: {{x: text, y: booleans}}\nscoring: {{any: x}}\n", "x.yaml:4: the rule 'any' fits no output: x (text) takes none", id="rule does not fit the one that is named"),
        pytest.param(f"{HEAD}outputs: {{x: integer, y: number}}\nscoring: value\n", "x.yaml:4: the rule 'value' fits several outputs; say which: scoring: {value: x}", id="rule fits several"),
        pytest.param(f"{HEAD}outputs: {{x: integer}}\nscoring: average\n", "x.yaml:4: 'average' is none of: any, share, mean, value, none", id="unknown rule"),
        pytest.param(f"{HEAD}outputs: {{x: integer}}\nscoring: 5\n", "x.yaml:4: expected any, share, mean, value, none or a score for each label, found 5", id="rule is a number"),
        pytest.param(f"{HEAD}outputs: {{x: integer}}\nscoring: [mean]\n", "x.yaml:4: expected any, share, mean, value, none or a score for each label, found a list", id="rule in a list"),
        pytest.param(f"{HEAD}outputs: {{x: text}}\nscoring: {{good: 1}}\n", "x.yaml:4: no output is a label; expected any, share, mean, value or none", id="scores without a label"),
        pytest.param(f"{HEAD}outputs: {{x: {LABEL}}}\nscoring:\n  good: 1\n  fair: 0\n", "x.yaml:4: the label 'bad' of 'x' has no score", id="label without a score"),
        pytest.param(f"{HEAD}outputs: {{x: {LABEL}}}\nscoring:\n  good: 1\n  fiar: 0\n", "x.yaml:6: 'fiar' is no label of 'x'; did you mean 'fair'?", id="unknown label"),
        pytest.param(f"{HEAD}outputs: {{x: {LABEL}}}\nscoring:\n  good: 1\n  fair: half\n  bad: 0\n", "x.yaml:6: expected a number, found 'half'", id="score is a text"),
        pytest.param(f"{HEAD}outputs: {{x: {LABEL}}}\nscoring: {{}}\n", "x.yaml:4: the label 'good' of 'x' has no score", id="no scores"),
        # Inputs.
        pytest.param("instructions: '{{output_format}}'\ninputs: [question, contexts, question]\noutputs: {x: text}\nscoring: none\n", "x.yaml:2: the input 'question' stands twice", id="input twice"),
        pytest.param("instructions: '{{output_format}}'\ninputs: question\noutputs: {x: text}\nscoring: none\n", "x.yaml:2: expected names, as [question, contexts], found a text", id="inputs are a text"),
        pytest.param("instructions: '{{output_format}}'\ninputs: []\noutputs: {x: text}\nscoring: none\n", "x.yaml:2: expected names, as [question, contexts], found nothing in it", id="no inputs"),
        pytest.param("instructions: '{{output_format}}'\ninputs:\n  q: list\noutputs: {x: text}\nscoring: none\n", "x.yaml:3: 'list' is none of: text, texts, contexts, json", id="unknown kind of input"),
        pytest.param("instructions: '{{output_format}}'\ninputs:\n  contexts: texts\noutputs: {x: text}\nscoring: none\n", "x.yaml:3: the input 'contexts', and no other, is of the kind 'contexts'", id="contexts are texts"),
        pytest.param("instructions: '{{output_format}}'\ninputs:\n  documents: contexts\noutputs: {x: text}\nscoring: none\n", "x.yaml:3: the input 'contexts', and no other, is of the kind 'contexts'", id="contexts of another name"),
        pytest.param("instructions: '{{output_format}}'\ninputs:\n  answer: texts\noutputs: {x: text}\nscoring: none\n", "x.yaml:3: the input 'answer' is of the kind 'text'", id="answer is texts"),
        pytest.param("instructions: '{{output_format}}'\ninputs:\n  my input: text\noutputs: {x: text}\nscoring: none\n", "x.yaml:3: an input cannot be called 'my input'; choose letters, digits and '_'", id="input with a space"),
        # Examples.
        pytest.param(f"{EXAMPLE}outputs: {{x: {LABEL}}}\nscoring: none\nexamples:\n{INPUTS}    outputs:\n      x: great\n", "x.yaml:8: 'x' is none of good, fair, bad; expected one of \"good\", \"fair\", \"bad\"", id="example: unknown label"),
        pytest.param(f"{EXAMPLE}outputs: {{x: {{kind: integer, range: [0, 1]}}}}\nscoring: value\nexamples:\n{INPUTS}    outputs:\n      x: 2\n", "x.yaml:8: 'x' is outside of 0 to 1; expected a whole number from 0 to 1", id="example: out of range"),
        pytest.param(f"{EXAMPLE}outputs: {{x: text}}\nscoring: none\nexamples:\n{INPUTS}    outputs:\n      x: 2\n", "x.yaml:8: 'x' is no text; expected \"text\"", id="example: number for a text"),
        pytest.param(f"{EXAMPLE}outputs: {{x: citations}}\nscoring: any\nexamples:\n{INPUTS}    outputs:\n      x:\n        - A one.\n        - C three.\n", "x.yaml:10: the statement 'C three.' is no sentence of the example's contexts; copy it verbatim", id="example: no such sentence"),
        pytest.param(f"{EXAMPLE}outputs: {{x: citations}}\nscoring: any\nexamples:\n{INPUTS}    outputs:\n      x: A one.\n", "x.yaml:8: expected a list of texts", id="example: one sentence"),
        pytest.param(f"{EXAMPLE}outputs: {{x: citations}}\nscoring: any\nexamples:\n{INPUTS}    outputs:\n      x:\n        - 1\n", "x.yaml:9: expected a text, found 1; put the text in quotes", id="example: number of a sentence"),
        pytest.param(f"{EXAMPLE}outputs: {{x: quotes}}\nscoring: any\nexamples:\n{INPUTS}    outputs:\n      x:\n        - A won.\n", "x.yaml:9: the statement 'A won.' stands in no context of the example; copy it verbatim", id="example: no such quote"),
        pytest.param(f"{EXAMPLE}outputs: {{x: claims}}\nscoring: mean\nexamples:\n{INPUTS}    outputs:\n      x: [a, b]\n      statement_scores: [1]\n", "x.yaml:9: expected a list of statement_scores with one entry for each of the 2 statements", id="example: too few scores"),
        pytest.param(f"{EXAMPLE}outputs: {{x: claims}}\nscoring: mean\nexamples:\n{INPUTS}    outputs:\n      x: [a, b]\n", "x.yaml:7: expected a list of statement_scores with one entry for each of the 2 statements", id="example: no scores"),
        pytest.param(f"{EXAMPLE}outputs: {{x: claims}}\nscoring: mean\nexamples:\n{INPUTS}    outputs:\n      x: [a, b]\n      statement_scores: [1, 2]\n", "x.yaml:9: expected nothing but 1 and 0", id="example: score of 2"),
        pytest.param(f"{EXAMPLE}outputs: {{x: claims}}\nscoring: mean\nexamples:\n{INPUTS}    outputs:\n      x: [a, b]\n      statement_scores: [1, 0]\n      evidence: [[A one.]]\n", "x.yaml:10: expected a list of evidence with one entry for each of the 2 statements", id="example: too little evidence"),
        pytest.param(f"{EXAMPLE}outputs: {{x: claims}}\nscoring: mean\nexamples:\n{INPUTS}    outputs:\n      x: [a]\n      statement_scores: [1]\n      evidence:\n        - [Z nine.]\n", "x.yaml:11: the statement 'Z nine.' is no sentence of the example's contexts; copy it verbatim", id="example: evidence that is none"),
        pytest.param(f"{EXAMPLE}outputs: {{x: text}}\nscoring: none\nexamples:\n{INPUTS}    outputs: {{}}\n", "x.yaml:7: the key 'x' is missing", id="example: no output"),
        pytest.param(f"{EXAMPLE}outputs: {{x: text}}\nscoring: none\nexamples:\n{INPUTS}    outputs: {{x: a, y: b}}\n", "x.yaml:7: unknown key 'y'; ", id="example: unknown output"),
        pytest.param(f"{EXAMPLE}outputs: {{x: text}}\nscoring: none\nexamples:\n  - inputs: {{question: q, contexts: [c]}}\n    outputs: {{x: a}}\n", "x.yaml:6: the key 'answer' is missing", id="example: no answer"),
        pytest.param(f"{EXAMPLE}outputs: {{x: text}}\nscoring: none\nexamples:\n  - inputs: {{question: q, contexts: c, answer: a}}\n    outputs: {{x: a}}\n", "x.yaml:6: expected a list of texts, found a text", id="example: one context"),
        pytest.param(f"{EXAMPLE}outputs: {{x: text}}\nscoring: none\nexamples: some\n", "x.yaml:5: expected a list of examples, found a text", id="examples are a text"),
        # Extending.
        pytest.param("name: y\nextends: context_relevance\noutputs: {relevant_statements: quotes}\n", "x.yaml:3: an evaluator that extends 'context_relevance' reads the same reply; keep the names and kinds", id="extends: other kind"),
        pytest.param("extends: context_relevance\noutputs: {statements: citations}\n", "x.yaml:2: an evaluator that extends 'context_relevance' reads the same reply; keep the names and kinds", id="extends: other name"),
        pytest.param("extends: context_sufficiency\noutputs: {missing: text}\n", "x.yaml:2: an evaluator that extends 'context_sufficiency' reads the same reply; keep the names and kinds", id="extends: an output less"),
        pytest.param("extends: context_relevance\ninstructions: Judge.\n", "x.yaml:2: 'instructions' would change the request that this evaluator shares with 'context_relevance'; copy that one", id="extends: instructions"),
        pytest.param("extends: context_relevance\nscoring: mean\n", "x.yaml:2: the rule 'mean' fits no output: relevant_statements (citations) takes any, share, none", id="extends: rule that does not fit"),
        pytest.param("extends:\nscoring: any\n", "x.yaml:1: expected a text, found nothing; put the text in quotes", id="extends: nothing"),
        pytest.param(f"{HEAD}outputs:\n  x: {LABEL}\n  y: {LABEL}\nscoring: {{good: 1, fair: 0.5, bad: 0}}\n", "x.yaml:6: the labels fit several outputs; say which: scoring: {x: {good: …}}", id="labels of two outputs"),
        pytest.param(f"{HEAD}outputs: {{x: {LABEL}}}\nscoring: {{y: {{good: 1}}}}\n", "x.yaml:4: 'y' is no output that is a label; known are x", id="labels of no output"),
        pytest.param(f"{HEAD}outputs: {{x: enum}}\nscoring: none\n", "x.yaml:3: unknown kind 'enum'; did you mean 'label'?", id="kind by another name"),
        pytest.param("extends: [context_relevance]\n", "x.yaml:1: expected a text, found a list; put the text in quotes", id="extends: a list"),
    ],
)  # fmt: skip
def test_wrong(text: str, message: str) -> None:
    """A wrong definition is refused before anything is sent, with file, line, value and what would be right."""
    with pytest.raises(DefinitionError) as raised:
        evaluator_of(text)
    assert str(raised.value)[: len(message)] == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: ./x.yaml\n", "evaluators extend each other without an end"),
        ("extends: y.yaml\n", "evaluators extend each other without an end"),
        ("extends: ./nowhere.yaml\n", "no evaluator '.*nowhere.yaml'"),
    ],
    ids=["itself", "each other", "missing file"],
)
def test_extends_files(tmp_path: Path, text: str, message: str) -> None:
    """An endless loop and a missing file are said in a sentence."""
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "y.yaml").write_text("extends: x.yaml\n", encoding="utf-8")
    with pytest.raises(DefinitionError, match=message) as raised:
        load_definition(str(tmp_path / "x.yaml"))
    assert ".yaml" in str(raised.value)


def test_extends_beside(tmp_path: Path) -> None:
    """A file that is extended is looked for beside the one that extends it; name, hash and score are its own."""
    (tmp_path / "base.yaml").write_text(f"{HEAD}outputs: {{x: citations}}\nscoring: any\n", encoding="utf-8")
    (tmp_path / "mine.yaml").write_text("extends: base.yaml\nscoring: share\n", encoding="utf-8")
    base, mine = (load_definition(str(tmp_path / f"{name}.yaml")) for name in ("base", "mine"))
    assert (mine.name, mine.scoring.rule, base.scoring.rule) == ("mine", "share", "any")
    assert (mine.instructions, mine.inputs) == (base.instructions, base.inputs)
    assert base.version.split("@")[1] != mine.version.split("@")[1]


# What is asked again, and what is not.


def asked(evaluator: Evaluator) -> tuple[object, ...]:
    """All of an evaluator that goes into the key of a reply."""
    static = evaluator.static
    return static.system, static.schema, static.name, static.parameters


WHOLE = """\
instructions: 'Judge. {{output_format}} {{examples}}'
inputs: [question, contexts]
outputs:
  x: citations
  y: {kind: label, values: [a, b]}
scoring: any
parameters: {max_completion_tokens: 100}
examples:
  - inputs: {question: "q?", contexts: ["A one. B two."]}
    outputs: {x: [A one.], y: a}
    reason: So it is.
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("scoring: any", "scoring: share", id="other rule"),
        pytest.param("scoring: any", "scoring: none", id="no score"),
        pytest.param("scoring: any", "scoring: {a: 1, b: 0}", id="scores of labels"),
        pytest.param("x: citations", "x: {kind: citations, report: all}", id="other columns"),
        pytest.param("inputs: [question", "name: z\ndescription: Other words.\ninputs: [question", id="name"),
        pytest.param("reason: So it is.", "reason: Because.", id="reason, which is not shown"),
        pytest.param("scoring: any", "# a comment\nscoring: any", id="comment"),
    ],
)
def test_nothing_is_asked_again(before: str, after: str) -> None:
    """What changes only the way from reply to row costs no call."""
    assert WHOLE.count(before) == 1
    assert asked(evaluator_of(WHOLE.replace(before, after))) == asked(evaluator_of(WHOLE))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("Judge.", "Judge well.", id="instructions"),
        pytest.param("x: [A one.]", "x: [B two.]", id="example's outputs"),
        pytest.param('"q?"', '"Why?"', id="example's inputs"),
        pytest.param("{max_completion_tokens: 100}", "{max_completion_tokens: 200}", id="value of a parameter"),
        pytest.param("{max_completion_tokens: 100}", "{max_completion_tokens: 100, seed: 1}", id="one more parameter"),
        pytest.param("values: [a, b]", "values: [a, b, c]", id="one more label"),
        pytest.param("y: {kind", "z: {kind", id="name of an output"),
    ],
)
def test_everything_is_asked_again(before: str, after: str) -> None:
    """What changes the request changes its key."""
    text = WHOLE.replace(before, after)
    if "z: {kind" in after:
        text = text.replace("y: a}", "z: a}")
    assert asked(evaluator_of(text)) != asked(evaluator_of(WHOLE))


def test_reasons_are_asked_for() -> None:
    """With --explain the reply holds a reason, and another key."""
    definition = check_definition(parse_yaml(WHOLE, "x.yaml"), default_name="x")
    plain, explaining = Evaluator(definition), Evaluator(definition, explain=True)
    assert asked(plain) != asked(explaining)
    assert "So it is." not in plain.static.system
    assert "So it is." in explaining.static.system


def test_graded_is_asked_like_binary() -> None:
    """Whoever has judged with one has the other for nothing."""
    binary, graded = load_evaluator("context_relevance"), load_evaluator("context_relevance_graded")
    assert asked(binary) == asked(graded)
    assert binary.static.form == graded.static.form
    assert binary.prompt.split("@")[1] != graded.prompt.split("@")[1]


# Numbers that a row cannot hold.


@pytest.mark.parametrize(
    ("outputs", "scoring", "text"),
    [
        pytest.param("x: integer", "value", '{"x": 100000000000000000000000}', id="integer"),
        pytest.param("x: integers", "mean", '{"x": [1e30, 0]}', id="integers"),
        pytest.param("x: number", "value", '{"x": 1e30}', id="number"),
        pytest.param("x: numbers", "mean", '{"x": [1e308, 1e308]}', id="sum beyond a float"),
        pytest.param("x: number", "value", f'{{"x": 1{"0" * 400}, "note": NaN}}', id="beyond a float"),
        pytest.param("x: json", "none", f'{{"x": 1{"0" * 40}, "note": NaN}}', id="any value"),
    ],
)
def test_numbers_beyond_belief(outputs: str, scoring: str, text: str) -> None:
    """No number ends the run: the reply is invalid, or the row can be written and its score is finite."""
    evaluator = evaluator_of(f"{HEAD}outputs: {{{outputs}}}\nscoring: {scoring}\n")
    task = evaluator.task(RECORD)
    try:
        evaluation = evaluator.evaluate(
            task, task.read(Reply(text=text, finish_reason="stop", model=None, usage=Usage()))
        )
    except Failure as failure:
        assert failure.kind is FailureKind.INVALID_REPLY  # noqa: PT017  # one of two good ends
    else:
        orjson.dumps([evaluation.score, evaluation.outputs])
        assert evaluation.score is None or math.isfinite(evaluation.score)


@pytest.mark.parametrize(
    ("text", "beginning", "named"),
    [
        pytest.param(f"{HEAD}outputs: {{x: booleans}}\nscoring: {{any: [x]}}\n", "x.yaml:4: ", "['x']", id="rule of a list"),
        pytest.param(f"{HEAD}outputs: {{x: booleans}}\nscoring: {{any: y}}\n", "x.yaml:4: ", "'y'", id="rule of no output"),
        pytest.param(
            f"{HEAD}outputs:\n  x: {{kind: integer, range: [0.2, 0.8]}}\nscoring: value\n", "x.yaml:4: ", "0.2", id="no whole number"
        ),
        pytest.param(
            "name: y\nextends: context_relevanc\n", "x.yaml:2: no evaluator 'context_relevanc'", "'context_relevance'", id="extends: unknown"
        ),
    ],
)  # fmt: skip
def test_wrong_in_other_ways(text: str, beginning: str, named: str) -> None:
    """The message leads to the place and quotes the value."""
    with pytest.raises(DefinitionError) as raised:
        evaluator_of(text)
    assert str(raised.value)[: len(beginning)] == beginning
    assert named in str(raised.value)

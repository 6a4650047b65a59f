"""`ctxrel prompts`, and what is said of a YAML file that is not right."""

from pathlib import Path

import pytest
from conftest import RunCommand
from servers.loopback import LoopbackServer

from ctxrel.evaluators.definition import built_in_names

TEXT = """\
name: mine
inputs: [question, contexts]
outputs:
  relevant_statements: citations
scoring: any
instructions: |
  Answer with {{output_format}}. A brace like {"a": 1} is text.
  {{examples}}
examples:
  - inputs:
      questions: Q?
      contexts: [One is here. Two is there., Three.]
    outputs:
      relevant_statements: ["Two is there."]
"""


def test_list(ctxrel: RunCommand) -> None:
    """The built-in evaluators are listed with what they need."""
    lines = ctxrel("prompts", "list").stdout.splitlines()
    assert lines[0].split() == ["evaluator", "needs", "what", "it", "judges"]
    assert [line.split()[0] for line in lines[1:]] == built_in_names()


def test_show(ctxrel: RunCommand) -> None:
    """An evaluator is shown as its file, or as the message the judge receives, with numbers for statements."""
    assert "{{examples}}" in ctxrel("prompts", "show", "context_relevance").stdout
    rendered = ctxrel("prompts", "show", "context_relevance", "--rendered").stdout
    assert "{{" not in rendered
    assert 'Output: {"relevant_statements":[1]}' in rendered
    assert "전입신고" in rendered


def test_copy_edit_check(ctxrel: RunCommand) -> None:
    """A copy is fine as it is, and is never overwritten unasked."""
    assert ctxrel("prompts", "copy", "context_relevance", "mine.yaml").returncode == 0
    done = ctxrel("prompts", "check", "mine.yaml")
    assert done.stdout.startswith("mine.yaml: fine; context_relevance@")
    again = ctxrel("prompts", "copy", "context_relevance", "mine.yaml")
    assert (again.returncode, "is there already" in again.stderr) == (2, True)
    assert ctxrel("prompts", "copy", "context_relevance", "mine.yaml", "--force").returncode == 0


def test_version_follows_content(ctxrel: RunCommand) -> None:
    """The hash changes with the instructions and not with a comment."""
    Path("a.yaml").write_text(TEXT)
    Path("b.yaml").write_text("# mine\n" + TEXT)
    Path("c.yaml").write_text(TEXT.replace("Answer", "Reply"))
    versions = [
        ctxrel("prompts", "check", name).stdout.split("; ")[1].split(",")[0] for name in ("a.yaml", "b.yaml", "c.yaml")
    ]
    assert versions[0] == versions[1] != versions[2]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("scoring: any", "scoring: al", "mine.yaml:5: 'al' is none of: any, share, mean, value, none"),
        ("scoring: any", "scoring: any\nbetter: low", "mine.yaml:6: 'low' is none of: higher, lower"),
        ("scoring: any", "scorring: any", "mine.yaml:5: unknown key 'scorring'; did you mean 'scoring'?"),
        ("scoring: any\n", "", "mine.yaml:1: the key 'scoring' is missing"),
        ("scoring: any", "scoring: any\nscoring: share", "mine.yaml:6: the key 'scoring' stands twice"),
        ("{{examples}}", "", "mine.yaml:6: the placeholder {{examples}} is missing"),
        ("{{output_format}}", "JSON", "mine.yaml:6: the placeholder {{output_format}} is missing"),
        ("{{examples}}", "{{exampels}}", "mine.yaml:6: unknown placeholder {{exampels}}"),
        ('Two is there."', 'Two is  hither."', "mine.yaml:14: the statement 'Two is  hither.' is no sentence of"),
        ("questions: Q?", "questions: ['Q?']", "mine.yaml:11: expected a text, found a list"),
        ("questions: Q?", "query: Q?", "mine.yaml:11: unknown key 'query'"),
        ("Three.]", "3]", "mine.yaml:12: expected a text, found 3"),
        (
            "inputs: [question, contexts]",
            "inputs: [question]",
            "mine.yaml:4: the kind 'citations' needs the input 'contexts'",
        ),
        (
            "relevant_statements: citations",
            "relevant_statements: [citations]",
            "mine.yaml:4: expected a kind (citations, ",
        ),
        (
            "scoring: any",
            "scoring: [any]",
            "mine.yaml:5: expected any, share, mean, value, none or a score for each label, found a list",
        ),
        ("citations", "text", "mine.yaml:5: the rule 'any' fits no output: relevant_statements (text) takes none"),
        ("name: mine", "name: 'my own'", "mine.yaml:1: the name 'my own' may hold"),
        ("name: mine", "parameters: {stream: true}", "mine.yaml:1: the request parameter 'stream' is set by ctxrel"),
        ("name: mine", "name: [", "mine.yaml:3: not valid YAML: "),
        ("name: mine", "name: !!python/object:os.system {}", "mine.yaml:1: "),
        (
            TEXT,
            "",
            "mine.yaml:1: expected keys (instructions, inputs, outputs, scoring, name, description, better, examples, parameters, decisions), found nothing; start from: ctxrel prompts copy",
        ),
        (TEXT, "a: &x [*x]", "mine.yaml:1: an alias (*) cannot be used here"),
        (TEXT, "a: &x [1]\nb: [*x, *x]", "mine.yaml:1: an alias (*) cannot be used here"),
        (TEXT, "[" * 3000, "mine.yaml: not valid YAML: nested too deeply"),
        (TEXT, "a: \x00", "mine.yaml: not valid YAML: "),
        ("name: mine", "parameters: {seed: .nan}", "mine.yaml:1: '.nan' is read as float; put it in quotes"),
        ("name: mine", "parameters: {day: 2024-01-01}", "mine.yaml:1: '2024-01-01' is read as date; put it in quotes"),
        ("name: mine", "parameters: {x: !!binary aGk=}", "mine.yaml:1: 'aGk=' is read as bytes; put it in quotes"),
        ("name: mine", f"parameters: {{seed: {2**70}}}", f"mine.yaml:1: '{2**70}' is read as int; put it in quotes"),
        (
            "name: mine",
            "name: mine: own",
            "mine.yaml:1: not valid YAML: mapping values are not allowed here; put a text",
        ),
        ("{{examples}}", "{{examples}} {{ examples }}", "mine.yaml:6: the placeholder {{examples}} stands twice"),
        (
            'Two is there."',
            'Two be there"',
            "mine.yaml:14: the statement 'Two be there' is no sentence of the example's contexts; copy it verbatim, the nearest is 'Two is there.'",
        ),
        ("relevant_statements", "score", "mine.yaml:4: an output called 'score' has to be the score"),
        ("relevant_statements: citations", "'my key!': citations", "mine.yaml:4: an output cannot be called 'my key!'"),
    ],
)
def test_what_is_wrong(ctxrel: RunCommand, server: LoopbackServer, old: str, new: str, said: str) -> None:
    """Each mistake is one sentence with file and line, from `check` and from `run`, before anything is sent."""
    assert old in TEXT
    Path("mine.yaml").write_text(TEXT.replace(old, new))
    Path("log.jsonl").write_text('{"question": "q?", "contexts": ["a b"]}\n')
    done = ctxrel("prompts", "check", "mine.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"ctxrel: {said}")
    assert done.stderr.count("\n") == 1
    run = ctxrel("run", "log.jsonl", "-e", "mine.yaml", "--base-url", server.url)
    assert (run.returncode, run.stderr) == (2, done.stderr)
    assert (server.seen, server.model_requests) == ([], [])
    assert not Path("log.ctxrel").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("context_relevence", "ctxrel: no evaluator 'context_relevence'; did you mean 'context_relevance'?"),
        ("absent.yaml", "ctxrel: cannot read 'absent.yaml': No such file or directory"),
    ],
)
def test_unknown_evaluator(ctxrel: RunCommand, name: str, said: str) -> None:
    """An unknown name gets the nearest one."""
    done = ctxrel("prompts", "show", name)
    assert (done.returncode, done.stderr.startswith(said)) == (2, True)


def test_spaces_in_placeholders_and_empty_options(ctxrel: RunCommand) -> None:
    """Placeholders may have spaces inside; options without a value are as if they were not there."""
    text = TEXT.replace("{{output_format}}", "{{  output_format }}") + "parameters:\ndescription:\n"
    Path("mine.yaml").write_text(text)
    rendered = ctxrel("prompts", "show", "mine.yaml", "--rendered").stdout
    assert rendered.startswith('Answer with {"relevant_statements": [numbers of sentences]}.')


def test_check_goes_through_all_files(ctxrel: RunCommand) -> None:
    """One bad file does not hide the next."""
    Path("good").write_text(TEXT)
    Path("context_relevance").write_text("a file that only has the name of a built-in evaluator")
    assert ctxrel("prompts", "check", "context_relevance").returncode == 0
    done = ctxrel("prompts", "check", "absent.yaml", "good", "gone.yaml")
    assert done.returncode == 2
    assert done.stdout.startswith("good: fine; mine@")
    assert "absent.yaml" in done.stderr
    assert "gone.yaml" in done.stderr


def test_haystack_examples() -> None:
    """An example in Haystack's form is understood: plural name, statements verbatim; the judge sees numbers."""
    from ctxrel.evaluators.definition import check_definition  # noqa: PLC0415
    from ctxrel.evaluators.evaluator import Evaluator  # noqa: PLC0415
    from ctxrel.evaluators.yaml_source import parse_yaml  # noqa: PLC0415

    definition = check_definition(parse_yaml(TEXT, "mine.yaml"), default_name="mine")
    assert Evaluator(definition).static.system == (
        'Answer with {"relevant_statements": [numbers of sentences]}. A brace like {"a": 1} is text.\n'
        'Input: {"question":"Q?","contexts":[{"1":"One is here.","2":"Two is there."},{"3":"Three."}]}\n'
        'Output: {"relevant_statements":[2]}'
    )

"""The pytest plugin: what its fixture asserts, what a failure says, and what it does to tests that do not use it."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from servers.loopback import MODEL, LoopbackServer, completion, error

from ctxrel.cli.testing.judge import ContextJudge
from ctxrel.cli.testing.plugin import SETTINGS
from ctxrel.evaluators.judges.endpoint import DEFAULT_MODEL

pytest_plugins = ["pytester"]
DOCS = Path(__file__).parent.parent.parent / "docs"
PASSING = """
    QUESTION = "Who created the Python language?"
    CONTEXTS = ["Python, created by Guido van Rossum in the late 1980s, is a language.", "Football is a sport."]

    def test_relevant(ctxrel):
        judged = ctxrel.assert_relevant(QUESTION, CONTEXTS)
        assert judged.score == 1
        assert judged.row["relevant_statements"] == CONTEXTS[:1]
        assert [context["relevant"] for context in judged.row["contexts"]] == [True, False]
        assert judged.row["status"] == "evaluated"
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with settings as strict as ours."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")  # a second of imports for each
    pytester.makeini("""
        [pytest]
        asyncio_mode = auto
        asyncio_default_fixture_loop_scope = function
        filterwarnings = error
    """)
    return pytester


def run(project: pytest.Pytester, *arguments: str, alone: bool = False) -> pytest.RunResult:
    """A pytest of its own; `alone` in a process of its own as well, as a user starts it."""
    return project.runpytest_subprocess(*arguments, timeout=120) if alone else project.runpytest_inprocess(*arguments)


def against(server: LoopbackServer) -> tuple[str, ...]:
    return f"--ctxrel-base-url={server.url}", f"--ctxrel-model={MODEL}"


def test_offline(project: pytest.Pytester) -> None:
    """Score and row are there; the settings may stand in the ini file."""
    project.makeini("[pytest]\nctxrel_model = offline")
    project.makepyfile(PASSING)
    run(project, alone=True).assert_outcomes(passed=1)
    assert (project.path / ".pytest_cache" / "d" / "ctxrel" / "store.sqlite").is_file()


def test_in_tests_with_an_event_loop(project: pytest.Pytester) -> None:
    """The same fixture serves tests with and without a loop, one after the other."""
    project.makepyfile(
        PASSING
        + """
    async def test_async(ctxrel):
        ctxrel.assert_relevant(QUESTION, CONTEXTS)
        ctxrel.assert_relevant("What is football?", ["Football is a sport."])

    def test_after(ctxrel):
        ctxrel.assert_faithful(QUESTION, CONTEXTS, "Python was created by Guido van Rossum.")
    """
    )
    run(project, "--ctxrel-model=offline").assert_outcomes(passed=3)


def test_what_a_failure_says(project: pytest.Pytester) -> None:
    """Score, sentences, the verdict on each context and tokens, beneath the test's own line and nothing of ours."""
    project.makepyfile("""
        QUESTION = "Who created the Python language?"

        def test_low(ctxrel):
            ctxrel.assert_relevant(QUESTION, ["Football is a sport. It is popular.", "Bread is baked."])

        def test_faithful(ctxrel):
            ctxrel.assert_faithful(
                QUESTION, ["Python was created by Guido van Rossum."],
                "Python was created by Guido van Rossum. It was named after a snake.", min_score=0.6,
            )

        def test_enough(ctxrel):
            ctxrel.assert_faithful(
                QUESTION, ["Python was created by Guido van Rossum."],
                "Python was created by Guido van Rossum. It was named after a snake.", min_score=0.5,
            )

        def test_nothing_retrieved(ctxrel):
            ctxrel.assert_relevant(QUESTION, [])
    """)
    result = run(project, "--ctxrel-model=offline")
    result.assert_outcomes(passed=1, failed=3)
    told = [line.removeprefix("E").strip() for line in result.outlines if line.startswith("E")]
    assert told == [
        "AssertionError: context_relevance: the score is 0, expected at least 1",
        "question: 'Who created the Python language?'",
        "relevant statements: none",
        "contexts:",
        "1: not relevant, 0 of 2 sentences: 'Football is a sport. It is popular.'",
        "2: not relevant, 0 of 1 sentences: 'Bread is baked.'",
        "model offline-1, 0 input and 0 output tokens",
        "AssertionError: faithfulness: the score is 0.5, expected at least 0.6",
        "question: 'Who created the Python language?'",
        "answer: 'Python was created by Guido van Rossum. It was named after a snake.'",
        "statements of the answer:",
        "supported by context 1: 'Python was created by Guido van Rossum.'",
        "not supported: 'It was named after a snake.'",
        "contexts:",
        "1: 'Python was created by Guido van Rossum.'",
        "model offline-1.1, 0 input and 0 output tokens",
        "AssertionError: context_relevance: the score is 0, expected at least 1",
        "question: 'Who created the Python language?'",
        "relevant statements: none",
        "contexts: none",
        "nothing was asked: there was nothing to judge",
    ]
    assert not [line for line in result.outlines if "cli/testing" in line]


def test_a_second_run_asks_nothing(project: pytest.Pytester, server: LoopbackServer) -> None:
    """Replies are kept in pytest's cache; within a run the endpoint is asked for its model once."""
    project.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(3))
        def test_asked(ctxrel, number):
            judged = ctxrel.evaluate("context_relevance", question=f"Question {number}?", contexts=["A text."])
            assert judged.row["usage"]["input_tokens"] == 100
    """)
    run(project, *against(server)).assert_outcomes(passed=3)
    assert (len(server.seen), len(server.model_requests)) == (3, 1)
    run(project, *against(server)).assert_outcomes(passed=3)
    assert (len(server.seen), len(server.model_requests)) == (3, 1)
    run(project, *against(server), "--ctxrel-store=replies.sqlite").assert_outcomes(passed=3)
    assert len(server.seen) == 6
    run(project, *against(server), "-p", "no:cacheprovider").assert_outcomes(passed=3)
    assert len(server.seen) == 9


def test_several_at_once(project: pytest.Pytester, server: LoopbackServer) -> None:
    """Processes that share the store, as the workers of xdist do, do not hinder each other."""
    project.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(30))
        def test_asked(ctxrel, number):
            ctxrel.evaluate("context_relevance", question=f"Question {number}?", contexts=["A text."])
    """)
    command = [sys.executable, "-m", "pytest", "-q", *against(server)]
    started = [subprocess.Popen(command, cwd=project.path, stdout=subprocess.PIPE) for _ in range(2)]
    outputs = [process.communicate(timeout=120)[0].decode() for process in started]
    assert all("30 passed" in output for output in outputs), outputs


def test_from_any_thread() -> None:
    """Tests that run on threads of their own share the fixture."""
    judge = ContextJudge({"model": "offline"}, store=None)
    with ThreadPoolExecutor(4) as threads:
        texts = [f"Text {number} is here." for number in range(20)]
        rows = threads.map(lambda text: judge.assert_relevant(f"Where is {text[:7]}?", [text]).row, texts)
        assert [row["relevant_statements"] for row in rows] == [[text] for text in texts]
    judge.close()


def test_settings_reach_the_judge(project: pytest.Pytester, server: LoopbackServer) -> None:
    """Parameters and explanations are asked for; the command line wins over the ini file."""
    project.makeini(f"""
        [pytest]
        asyncio_default_fixture_loop_scope = function
        ctxrel_base_url = {server.url}
        ctxrel_model = another
        ctxrel_explain = true
        ctxrel_timeout = 20.5
        ctxrel_attempts = 1
        ctxrel_param =
            reasoning_effort=low
            seed=7
    """)
    server.script = lambda _: completion(json.dumps({"reason": "It says nothing.", "relevant_statements": []}))
    project.makepyfile("""
        def test_low(ctxrel):
            ctxrel.assert_relevant("Question?", ["A text."])
    """)
    result = run(project, f"--ctxrel-model={MODEL}")
    result.stdout.fnmatch_lines(
        ["E *reason: 'It says nothing.'", "E *model judge-1-2026-01-01, 100 input and 7 output*"]
    )
    (seen,) = server.seen
    assert (seen.body["model"], seen.body["reasoning_effort"], seen.body["seed"]) == (MODEL, "low", 7)


def test_a_failed_judgement_is_no_score(project: pytest.Pytester, server: LoopbackServer) -> None:
    """It names its kind, and is no AssertionError, so that nobody takes it for a low score."""
    server.script = lambda _: completion(None, finish_reason="content_filter")
    project.makepyfile("""
        def test_filtered(ctxrel):
            ctxrel.assert_relevant("Question?", ["A text."])

        def test_bad_input(ctxrel):
            ctxrel.assert_relevant(None, ["A text."])
    """)
    result = run(project, *against(server))
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["E *RecordFailed: context_relevance could not be judged: content_filter: *", "E *judged: bad_input: *"]
    )
    assert not [line for line in result.outlines if "AssertionError" in line or "cli/testing" in line]


def test_an_endpoint_that_will_not_serve(project: pytest.Pytester, server: LoopbackServer) -> None:
    """The first test finds out, every test that asks says so, and nothing more is sent."""
    server.models = error(401, "Incorrect API key")
    project.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(3))
        def test_asked(ctxrel, number):
            ctxrel.assert_relevant(f"Question {number}?", ["A text."])
    """)
    result = run(project, *against(server))
    result.assert_outcomes(failed=3)
    assert len([line for line in result.outlines if line.startswith("E") and "refused the API key" in line]) == 3
    assert (len(server.seen), len(server.model_requests)) == (0, 1)


def test_no_key(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """What to do is said in the options that pytest has, also the second time."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    project.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(2))
        def test_asked(ctxrel, number):
            ctxrel.assert_relevant(f"Question {number}?", ["A text."])
    """)
    result = run(project)
    result.assert_outcomes(failed=2)
    advice = "name another with --ctxrel-api-key-env, or try --ctxrel-model offline, which needs none"
    assert len([line for line in result.outlines if line.startswith("E") and line.endswith(advice)]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ctxrel-param=effort"], "'effort' is no request parameter"),
        (["--ctxrel-attempts=0"], "the argument 'attempts' is a number of attempts from 1, not 0"),
        (["--ctxrel-api=completions"], "the argument 'api' is chat or decisions, not 'completions'"),
        (["--ctxrel-store=test_x.py/store"], "cannot use the store"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_settings_that_cannot_be(project: pytest.Pytester, arguments: list[str], said: str) -> None:
    """One sentence, at the set-up of the tests that use the fixture; the others go on."""
    project.makepyfile(test_x="def test_x(ctxrel): pass\ndef test_y(): pass")
    result = run(project, "--ctxrel-model=offline", *arguments)
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines([f"*ctxrel: {said}*"])
    assert not [line for line in result.outlines if "Traceback" in line or "cli/testing" in line]


def test_nothing_is_imported_for_tests_that_do_not_use_it(project: pytest.Pytester) -> None:
    """The plugin costs other projects nothing."""
    project.makepyfile("""
        import sys

        def test_without():
            ours = {name for name in sys.modules if name.startswith("ctxrel.")}
            assert ours == {"ctxrel.cli", "ctxrel.cli.testing", "ctxrel.cli.testing.plugin"}
    """)
    run(project, alone=True).assert_outcomes(passed=1)
    assert not (project.path / ".pytest_cache" / "d" / "ctxrel").exists()


def test_a_fixture_of_the_same_name(project: pytest.Pytester) -> None:
    """One in a conftest goes before, whatever its scope; and the plugin can be left out."""
    project.makeconftest("import pytest\n@pytest.fixture\ndef ctxrel(tmp_path): return 'mine'")
    project.makepyfile("def test_mine(ctxrel): assert ctxrel == 'mine'")
    run(project).assert_outcomes(passed=1)
    project.path.joinpath("conftest.py").unlink()
    result = run(project, "-p", "no:ctxrel", alone=True)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'ctxrel' not found"])


def test_page(project: pytest.Pytester) -> None:
    """The page's example passes offline, and its table names every setting."""
    page = (DOCS / "pytest.md").read_text(encoding="utf-8")
    example = page.split("```python\n")[1].split("```")[0]
    project.path.joinpath("test_page.py").write_text(example, encoding="utf-8")
    run(project, "--ctxrel-model=offline").assert_outcomes(passed=example.count("def test_"))
    told = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert told == [f"ctxrel_{name}" for name in SETTINGS]
    assert f"| `ctxrel_model` | `{DEFAULT_MODEL}` |" in page
    assert f"{DEFAULT_MODEL} by default" in SETTINGS["model"][1]

"""docs/recipes/github-actions.md."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import read_rows
from recipes.conftest import Shell
from recipes.page import Page
from recipes.workflow import Workflow
from servers.loopback import Answer, LoopbackServer, Seen, cite, completion

PAGE = Page("github-actions.md")
CONTEXT = {
    "github.event_name": "pull_request",
    "github.event.pull_request.html_url": "https://github.com/o/r/pull/7",
    "github.token": "ghs_x",
    "secrets.OPENAI_API_KEY": "sk-of-the-secret",
}
ANSWER = 'while read -r line; do echo "${line%\\}}, \\"contexts\\": [\\"TEXT\\"], \\"answer\\": \\"In it.\\"}"; done'


def judge(seen: Seen) -> Answer:
    """Relevant where it says so; one statement, supported where it is relevant."""
    good = "good" in json.dumps(seen.record)
    if "answer" not in seen.record:
        return cite(1) if good else cite()
    reply = {"statements": ["In it."], "evidence": [[1]] if good else [[]], "statement_scores": [int(good)]}
    return completion(json.dumps(reply))


@pytest.fixture
def workflow(shell: Shell, endpoint: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workflow:
    """The workflow, and a `pip` and a `gh` that keep what they are told."""
    endpoint.script = judge
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step-summary.md"))
    shell.add("pip", f'echo "$@" >> {tmp_path}/pip')
    shell.add(
        "gh", f'echo "$GH_TOKEN" "$@" >> {tmp_path}/gh; for last; do :; done; cat "$last" > {tmp_path}/comment.md'
    )
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@b.example")
    return Workflow(PAGE.file(".github/workflows/rag.yml"), "judge")


def check_out(text: str) -> None:
    """A pull request whose answers rest on this passage, merged into its base, as the runner checks it out."""
    questions = [{"id": f"q{n}", "question": f"Where is {n}?"} for n in range(12)]
    Path("head/rag").mkdir(parents=True)
    Path("head/rag/questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions))
    git("init", "--quiet", "--initial-branch=main")
    commit("A good passage.")
    git("switch", "--quiet", "--create", "change")
    commit(text)
    git("switch", "--quiet", "main")
    git("merge", "--quiet", "--no-ff", "--no-edit", "change")


def commit(text: str) -> None:
    Path("head/rag/answer.sh").write_text(ANSWER.replace("TEXT", text) + "\n")
    git("add", ".")
    git("commit", "--quiet", "--allow-empty", "--message", text)


def git(*arguments: str) -> None:
    subprocess.run(["git", "-C", "head", *arguments], check=True, timeout=60)


def test_a_worse_pull_request(workflow: Workflow, shell: Shell, endpoint: LoopbackServer) -> None:
    """It is commented, told on the job's page, and fails the job with exit 3; the comment holds no text of a record."""
    check_out("A poor passage.")
    assert workflow.run(shell, CONTEXT, {"Compare": 3}) == [
        "Install", "Answer and judge", "Answer and judge the base", "Compare: 3", "Summary", "Comment",
    ]  # fmt: skip
    assert Path("gh").read_text().split() == [
        "ghs_x", "pr", "comment", "https://github.com/o/r/pull/7", "--edit-last", "--create-if-none", "--body-file",
        "comparison.md",
    ]  # fmt: skip
    comment = Path("comment.md").read_text()
    assert re.search(
        r"^\| context\\_relevance \| 12 \| 1\.000 \| 0\.000 \| -1\.000 \| .* \| lower \|$", comment, re.MULTILINE
    )
    assert re.search(r"^\| faithfulness \| .* \| lower \|$", comment, re.MULTILINE)
    assert "passage" not in comment
    assert Path("step-summary.md").read_text() == Path("head.md").read_text() + comment
    assert len(read_rows(Path(), "changed.jsonl")) == 24
    assert {seen.headers["Authorization"] for seen in endpoint.seen} == {"Bearer sk-of-the-secret"}


def test_a_pull_request_that_changes_nothing(workflow: Workflow, shell: Shell, endpoint: LoopbackServer) -> None:
    """The base's answers are in the store already; the job does well."""
    check_out("A good passage.")
    assert "Compare" in workflow.run(shell, CONTEXT, {})
    assert len(endpoint.seen) == 24
    assert "no clear difference" in Path("comment.md").read_text()


def test_push_to_main(workflow: Workflow, shell: Shell) -> None:
    """Main's own answers are judged for the store, and nothing is compared or commented."""
    check_out("A good passage.")
    done = workflow.run(shell, {**CONTEXT, "github.event_name": "push"}, {})
    assert done == ["Install", "Answer and judge", "Summary"]
    assert Path("replies.sqlite").exists()
    assert not Path("gh").exists()


def test_a_pull_request_from_a_fork(workflow: Workflow, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the secret the run is refused, and nothing else happens."""
    check_out("A good passage.")
    monkeypatch.delenv("OPENAI_BASE_URL")
    done = workflow.run(shell, {**CONTEXT, "secrets.OPENAI_API_KEY": ""}, {"Answer and judge": 2})
    assert done == ["Install", "Answer and judge: 2", "Summary"]


def test_steps() -> None:
    """It asks for no more rights than it needs, and the cache is kept where the job fails."""
    workflow = Workflow(PAGE.file(".github/workflows/rag.yml"), "judge")
    assert set(workflow.events) == {"pull_request", "push"}
    assert workflow.permissions == {"contents": "read", "pull-requests": "write"}
    assert all(re.fullmatch(r"actions/[\w/-]+@v\d+", action) for action in workflow.actions)
    restore, save = (step for step in workflow.steps if step.get("uses", "").startswith("actions/cache/"))
    assert "!cancelled()" in save["if"]
    assert (restore["with"]["path"], restore["with"]["key"]) == (save["with"]["path"], save["with"]["key"])
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"])

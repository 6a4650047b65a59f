"""Slips of a newcomer, each met with one sentence that says what to do; those of single modules stand in their tests."""

import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import RunCommand
from servers.loopback import MODEL, LoopbackServer

WriteLog = Callable[..., Path]
RECORDS = [{"question": "Who?", "contexts": []}, {"question": "What?", "contexts": ["A text."]}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu", "log.jsonl"], "No such command 'rnu'. Did you mean 'run'?"),
        (["insepct", "log.jsonl"], "No such command 'insepct'. Did you mean 'inspect'?"),
        (["prompts", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["--versoin"], "No such option: --versoin (Possible options: --version)"),
        (["run", "log.jsonl", "--concurency", "3"], "No such option: --concurency (Possible options: --concurrency"),
        (["log.jsonl"], "'log.jsonl' is no command; to judge a log: ctxrel run log.jsonl"),
        (["prompts", "show", "faithfulnes"], "no evaluator 'faithfulnes'; did you mean 'faithfulness'?"),
        (["run", "log.jsonl", "--question-field", "qestion"], "no record has the field 'qestion', did you mean 'question'"),
        (["run", "log.jsonl", "--contexts-field", "contexts[].txt"], "no item has the field 'contexts[].txt'; name the contexts with --contexts-field"),
        (["run", "log.jsonl", "--sample", "1", "--sample-by", "lnag"], "no record has the field 'lnag'; --sample-by takes one that they have"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_mistyped(ctxrel: RunCommand, write_log: WriteLog, arguments: list[str], said: str) -> None:
    """Commands, options, evaluators and fields: the likely one is named, nothing is judged, and it is exit 2."""
    write_log(RECORDS)
    offline = ["-m", "offline"] if arguments[0] == "run" else []
    done = ctxrel(*arguments, *offline)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not Path("log.ctxrel", "results.jsonl").exists()


def test_an_empty_list_first_is_no_slip(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Where nothing was retrieved the field of the items is believed."""
    log = write_log([{"question": "Who?", "contexts": []}] * 2)
    assert ctxrel("run", log, "-m", "offline", "--contexts-field", "contexts[].text").returncode == 0


def test_a_whole_address_as_base_url(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """The address that an API's page shows is not the base URL."""
    log = write_log(RECORDS)
    done = ctxrel("run", log, "--base-url", "https://api.openai.com/v1/chat/completions/")
    assert done.returncode == 2
    said = "ctxrel: the base URL ends in '/chat/completions', which is added to it; leave that out"
    assert done.stderr.splitlines()[-1] == said


def test_https_for_http(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A server without TLS is told from one that is not there."""
    url = server.url.replace("http:", "https:")
    done = ctxrel("run", write_log(RECORDS), "--base-url", url, "-m", MODEL)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ctxrel: no TLS with {url}: it does not speak TLS, or another version (is it http: instead?); "
        "check that the server runs and that --base-url is right"
    )


def test_a_proxy_that_is_not_there(ctxrel: RunCommand, write_log: WriteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy is named, without its password: the endpoint is not to blame."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        proxy = f"127.0.0.1:{unused.getsockname()[1]}"
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:hunter2@{proxy}")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
        done = ctxrel("run", write_log(RECORDS), "--base-url", "https://judge.invalid/v1")
    assert done.returncode == 1
    said = f"ctxrel: no connection to https://judge.invalid/v1: the environment's proxy {proxy}: Connection refused; "
    assert done.stderr.splitlines()[-1].startswith(said)
    assert "hunter2" not in done.stderr


def test_a_host_that_does_not_exist(ctxrel: RunCommand, write_log: WriteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the resolver's words, and no others."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    done = ctxrel("run", write_log(RECORDS), "--base-url", "https://judge.invalid/v1")
    assert done.returncode == 1
    assert "no connection to https://judge.invalid/v1: " in done.stderr
    assert "Cannot connect to host" not in done.stderr


def test_another_programs_database_as_store(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """It stays as it is."""
    database = sqlite3.connect("other.sqlite")
    database.execute("CREATE TABLE customers (name TEXT)")
    database.close()
    before = Path("other.sqlite").read_bytes()
    done = ctxrel("run", write_log(RECORDS), "-m", "offline", "--store", "other.sqlite")
    assert done.returncode == 1
    said = "ctxrel: 'other.sqlite' is a database, but no store of ctxrel; another can be named with --store"
    assert done.stderr.splitlines()[-1] == said
    assert Path("other.sqlite").read_bytes() == before


def test_a_folder_that_cannot_be_made(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """The option that names another is named."""
    done = ctxrel("run", write_log(RECORDS), "-m", "offline", "-o", "/proc/nowhere")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("; name another with --output")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("ctxrel doc", ["doctor"]),
        ("ctxrel run --sample-", ["--sample-by"]),
        ("ctxrel run --progress p", ["plain"]),
        ("ctxrel run -e context_s", ["context_sufficiency"]),
        ("ctxrel run -e mi", ["mine.yaml"]),
        ("ctxrel run -e sub/", ["sub/deep.yml"]),
        ("ctxrel run -m off", ["offline"]),
        ("ctxrel run -m ./", ["./sub/", "./w.gguf"]),
        ("ctxrel prompts copy child", ["child_safety"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_completion(tmp_path: Path, words: str, found: list[str]) -> None:
    """What a shell is offered for the word that was begun."""
    (tmp_path / "sub").mkdir()
    for name in ("mine.yaml", "log.jsonl", "w.gguf", ".hidden.gguf", "sub/deep.yml"):
        (tmp_path / name).touch()
    asked = {"_CTXREL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    code = "import sys; sys.argv = ['ctxrel']; from ctxrel.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_show_completion(ctxrel: RunCommand, shell: str) -> None:
    """Each shell has a script of its own."""
    done = ctxrel("--show-completion", shell)
    assert done.returncode == 0
    assert "COMPLETE" in done.stdout

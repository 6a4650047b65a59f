"""Slips of a newcomer, each met with one sentence that says what to do; those of single modules stand in their tests."""

import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from conftest import RunCommand
from servers.loopback import MODEL, LoopbackServer, error

WriteLog = Callable[..., Path]
RECORDS = [{"question": "Who?", "contexts": []}, {"question": "What?", "contexts": ["A text."]}]


def test_first_help(ctxrel: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eighty columns have room for what each command does: no sentence is cut."""
    monkeypatch.setenv("COLUMNS", "80")
    _, commands = ctxrel("--help").stdout.split("\nCommands:\n")
    assert "..." not in commands


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


@pytest.mark.parametrize(
    ("path", "model", "status", "said"),
    [
        ("/v1", "jugde-1", 200, "does not serve the model 'jugde-1'; choose another with --model, for example judge-1"),
        ("", MODEL, 200, "has no chat completions (HTTP 404); check --base-url, it usually ends in /v1"),
        ("/v1", MODEL, 401, "refused the API key (HTTP 401); check it and --api-key-env"),
    ],
    ids=["no such model", "wrong path", "wrong key"],
)
def test_what_the_endpoint_refuses(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, monkeypatch: pytest.MonkeyPatch,
    path: str, model: str, status: int, said: str,
) -> None:  # fmt: skip
    """Model, path and key: what to check, and never the key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    if status != 200:
        server.models = error(status, "Incorrect API key provided: sk-secret", code="invalid_api_key")
    done = ctxrel("run", write_log(RECORDS), "--base-url", server.url.removesuffix("/v1") + path, "-m", model)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(said)
    assert "sk-secret" not in done.stderr


def test_no_key(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """The variable is named, and the judge that needs none."""
    done = ctxrel("run", write_log(RECORDS))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "ctxrel: no API key for api.openai.com: set the environment variable OPENAI_API_KEY, name another with "
        "--api-key-env, or try --model offline, which needs none",
    )


def test_version(ctxrel: RunCommand) -> None:
    """The version that is installed."""
    done = ctxrel("--version")
    assert (done.returncode, done.stdout) == (0, f"ctxrel {version('ctxrel')}\n")


@pytest.mark.parametrize("name", ["empty.jsonl", "array.jsonl"])
def test_logs_that_are_no_lines(ctxrel: RunCommand, name: str) -> None:
    """An empty log is one sentence; an array is read whatever its name."""
    Path("empty.jsonl").touch()
    Path("array.jsonl").write_text('[{"question": "q?", "contexts": ["c"]}]')
    done = ctxrel("run", name, "-m", "offline")
    wanted = (
        (2, "ctxrel: 'empty.jsonl' is empty: it holds no records")
        if name == "empty.jsonl"
        else (0, "results: array.ctxrel/results.jsonl")
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == wanted


def test_own_rows_as_a_log(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Rows of a run are no log, unless fields in them are named."""
    records = [{"question": "Who?", "contexts": ["A text."], "answer": "He."}]
    assert ctxrel("run", write_log(records), "-m", "offline", "--with-input").returncode == 0
    done = ctxrel("run", "log.ctxrel/results.jsonl", "-m", "offline", "-o", "again")
    assert done.returncode == 2
    assert (
        "'log.ctxrel/results.jsonl' holds the rows of a run and is no log; give the log they were made of"
        in done.stderr
    )
    named = ctxrel(
        "run", "log.ctxrel/results.jsonl", "-m", "offline", "-o", "again", "--contexts-field", "input.contexts"
    )
    assert named.returncode == 0


@pytest.mark.parametrize(
    ("condition", "records", "said"),
    [
        ("ts>2020", 2, "none of 2 records meets --where ts>2020; the field 'ts' is a text, as '2026-11-30T02:00': write --where 'ts>\"2020\"' to compare texts"),
        ("ts>2020", 1, "the only record does not meet --where ts>2020; the field 'ts' is a text"),
        ("st>2020", 2, "none of 2 records meets --where st>2020; no record has the field 'st'"),
    ],
)  # fmt: skip
def test_a_text_compared_with_a_number(
    ctxrel: RunCommand, write_log: WriteLog, condition: str, records: int, said: str
) -> None:
    """A date is a text: the condition that compares it is shown, and holds."""
    log = write_log([{"question": "q?", "contexts": ["c"], "ts": "2026-11-30T02:00"}] * records)
    done = ctxrel("run", log, "-m", "offline", "--where", condition)
    assert said in done.stderr
    assert ctxrel("run", log, "-m", "offline", "--where", 'ts>"2020"').returncode == 0


@pytest.mark.parametrize("command", ["run", "estimate"])
def test_another_programs_database_as_store(ctxrel: RunCommand, write_log: WriteLog, command: str) -> None:
    """It stays as it is."""
    database = sqlite3.connect("other.sqlite")
    database.execute("CREATE TABLE customers (name TEXT)")
    database.close()
    before = Path("other.sqlite").read_bytes()
    done = ctxrel(command, write_log(RECORDS), "-m", "offline", "--store", "other.sqlite")
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

"""`ctxrel doctor`: what it finds, what it advises, and that it changes and shows nothing it should not."""

import datetime as dt
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from conftest import RunCommand
from servers.loopback import MODEL, Answer, LoopbackServer, completion, error

from ctxrel.cli.health.finding import Finding
from ctxrel.cli.health.service import served_model
from ctxrel.cli.health.storage import look_at_store
from ctxrel.cli.runs.store import Store
from ctxrel.cli.runs.store_schema import SCHEMA_VERSION

KEY = "sk-secret-0123456789"
QUIET = {"ctxrel", "python", "packages", "extras", "terminal", "output"}


def look(ctxrel: RunCommand, *arguments: str | Path, code: int = 0) -> dict[str, dict[str, Any]]:
    """The findings by name."""
    done = ctxrel("doctor", "--json", *arguments)
    assert (done.returncode, done.stderr) == (code, "")
    report = json.loads(done.stdout)
    findings = {check.pop("name"): check for check in report["checks"]}
    assert (report["status"] == "fail") is bool(code)
    return findings


def ok(found: str) -> dict[str, Any]:
    return {"status": "ok", "found": found, "advice": None}


def test_all_is_well(
    ctxrel: RunCommand, server: LoopbackServer, write_log: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions, key, way, endpoint, model, folder and store; nothing but GET is sent, and the key is not shown."""
    log = write_log([{"question": "Question?", "contexts": ["A text."]}])
    assert ctxrel("run", log, "--base-url", server.url, "-m", MODEL).returncode == 0
    asked, before = len(server.seen), sorted(Path("log.ctxrel").iterdir())
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    done = ctxrel("doctor", "--json", "--base-url", server.url, "-m", MODEL, "-o", "log.ctxrel")
    assert KEY not in done.stdout + done.stderr
    findings = {check.pop("name"): check for check in json.loads(done.stdout)["checks"]}
    assert findings["ctxrel"] == ok(version("ctxrel"))
    assert f"orjson {version('orjson')}" in findings["packages"]["found"]
    assert "llamacpp" in findings["extras"]["found"]
    assert "protocol" not in findings["extras"]["found"]
    assert {name: finding for name, finding in findings.items() if name not in QUIET | {"store"}} == {
        "key": ok("OPENAI_API_KEY is set"),
        "base url": ok(f"{server.url} (--base-url)"),
        "proxy": ok("none for this endpoint"),
        "endpoint": ok("answers, and lists 1 models"),
        "model": ok(f"{MODEL} is served, and no shutdown is announced"),
    }
    assert findings["output"]["found"].startswith("'log.ctxrel' can be written to, ")
    assert findings["store"]["found"].startswith(
        f"'log.ctxrel/store.sqlite': version {SCHEMA_VERSION}, 1 replies, 0 failures, 1 runs, "
    )
    assert findings["store"]["found"].endswith("intact")
    assert (len(server.seen), sorted(Path("log.ctxrel").iterdir())) == (asked, before)


def test_for_people(ctxrel: RunCommand, server: LoopbackServer) -> None:
    """A line each, on standard output; what to do stands behind what was found."""
    server.models = error(401, "Incorrect API key")
    done = ctxrel("doctor", "--base-url", server.url, "-m", MODEL)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[1].split() == ["ok", "ctxrel", version("ctxrel")]
    assert (
        f"fail  endpoint  the endpoint {server.url} refused the API key (HTTP 401); check it and --api-key-env" in lines
    )


def test_ask(ctxrel: RunCommand, server: LoopbackServer) -> None:
    """One tiny request tells which response format works."""

    def script(seen: Any) -> Answer:  # noqa: ANN401
        if seen.body.get("response_format", {}).get("type") == "json_schema":
            return error(400, "json_schema is not supported", param="response_format")
        return completion('{"well": true}')

    server.script = script
    findings = look(ctxrel, "--base-url", server.url, "-m", MODEL, "--ask", "--param", "seed=7")
    assert findings["request"] == {
        "status": "warn",
        "found": f"answered by {MODEL}-2026-01-01 with response_format json_object; 100 input and 7 output tokens",
        "advice": "the endpoint does not take a JSON schema; response_format is json_object",
    }
    assert [seen.body["seed"] for seen in server.seen] == [7, 7]
    assert len(json.dumps(server.seen[0].body)) < 600


def test_ask_and_no_reply(ctxrel: RunCommand, server: LoopbackServer) -> None:
    """A reply that cannot be read is a failure with its kind."""
    server.script = lambda _: completion("I am well.")
    findings = look(ctxrel, "--base-url", server.url, "-m", MODEL, "--ask", code=1)
    assert findings["request"]["found"].startswith("invalid_reply: ")


LISTED = {"id": MODEL, "created": 1, "object": "model"}


@pytest.mark.parametrize(
    ("models", "name", "status", "found"),
    [
        (Answer(body={"data": [{"id": "judge-2"}]}), "model", "fail", "does not serve the model 'judge-1'; choose another with --model, for example judge-2"),
        (Answer(body={"data": [{**LISTED, "shutdown_date": "2020-01-01"}]}), "model", "warn", "the model judge-1 was to be shut down on 2020-01-01; choose its successor with --model in time"),
        (Answer(body=b"<html>"), "endpoint", "warn", "answers, but lists no models"),
        (error(404, "no such path"), "endpoint", "warn", "answers, but knows no /models (HTTP 404)"),
        (error(503, "overloaded"), "endpoint", "fail", "the endpoint failed (HTTP 503)"),
        (error(401, "You have insufficient scope"), "endpoint", "warn", "answers, but does not list its models (HTTP 401)"),
        (Answer(status=308, headers={"Location": "https://example.org/v1/models"}), "endpoint", "fail", "sends requests on to https://example.org/v1/models (HTTP 308)"),
        (Answer(fault="reset"), "endpoint", "fail", "no connection to "),
    ],
    ids=["unknown model", "shut down", "no list", "no /models", "overloaded", "scope", "redirect", "reset"],
)  # fmt: skip
def test_endpoints(
    ctxrel: RunCommand, server: LoopbackServer, models: Answer, name: str, status: str, found: str
) -> None:
    """What an endpoint may have to say to GET /models."""
    server.models = models
    finding = look(ctxrel, "--base-url", server.url, "-m", MODEL, code=int(status == "fail"))[name]
    assert finding["status"] == status
    assert found in finding["found"]
    assert server.seen == []


def test_until_when() -> None:
    """The price list tells of a shutdown before the endpoint does."""
    today = dt.date(2026, 11, 30)
    assert (
        served_model("m", dt.date(2027, 4, 1), today=today).found
        == "m is served, until 2027-04-01 by what is announced"
    )
    soon = served_model("m", dt.date(2026, 12, 11), today=today)
    assert soon.status == "warn"
    assert soon.found.startswith("the model m will be shut down on 2026-12-11 (in 11 days); ")


def test_no_key_and_no_room(ctxrel: RunCommand) -> None:
    """What cannot work fails, and everything else is looked at all the same."""
    findings = look(ctxrel, "-o", "/proc/nowhere", code=1)
    assert findings["judge"]["found"].startswith("no API key for api.openai.com: set the environment variable OPENAI_")
    assert findings["output"]["status"] == "fail"
    assert findings["output"]["found"].startswith("cannot write to '/proc/nowhere': ")


def test_proxy_without_its_password(ctxrel: RunCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy in force is named, its password is not."""
    monkeypatch.setenv("HTTPS_PROXY", "http://user:hunter2@127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://judge.invalid/v1")
    findings = look(ctxrel, code=1)
    assert findings["proxy"] == ok("127.0.0.1:9")
    assert findings["base url"] == ok("https://judge.invalid/v1 (OPENAI_BASE_URL)")
    assert "hunter2" not in json.dumps(findings)


def test_config_file(ctxrel: RunCommand, tmp_path: Path) -> None:
    """Options of the run's config file hold here as well."""
    (tmp_path / "ctxrel.toml").write_text('[run]\nmodel = "offline"\nstore = "night.sqlite"\n', encoding="utf-8")
    findings = look(ctxrel)
    assert findings["options"] == ok("ctxrel.toml")
    assert findings["model"] == ok("the offline judge needs no key and no network")
    assert (findings["store"]["status"], findings["store"]["found"]) == ("warn", "'night.sqlite' is not there yet")


def test_a_terminal_without_unicode() -> None:
    """An encoding that cannot show records is told."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "ctxrel.cli", "doctor", "-m", "offline", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    (terminal,) = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "terminal"]
    assert terminal["found"] == "the encoding is ascii"


def damaged(path: Path) -> None:
    """A page in the middle is overwritten."""
    with sqlite3.connect(path) as database:
        database.executescript(
            "PRAGMA journal_mode = DELETE; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)"
            "INSERT INTO failures SELECT randomblob(16), 'timeout', hex(randomblob(90)), 0 FROM n;"
        )
    database.close()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\x07" * 4096)


def with_pragma(pragma: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        database = sqlite3.connect(path)
        database.execute(f"PRAGMA {pragma}")
        database.close()

    return change


@pytest.mark.parametrize(
    ("change", "status", "found"),
    [
        (lambda _: None, "ok", f": version {SCHEMA_VERSION}, 0 replies, 0 failures, 0 runs, "),
        (with_pragma("user_version = 9"), "fail", " was written by a newer ctxrel (version 9)"),
        (with_pragma("user_version = 0"), "fail", " is a database, but no store of ctxrel"),
        (with_pragma("journal_mode = DELETE"), "warn", ", with a rollback journal"),
        (damaged, "fail", "damaged"),
        (lambda path: path.write_bytes(b"no database, but a text of more than a hundred bytes" * 9), "fail", " is no store, or damaged: file is not a database"),
    ],
    ids=["new", "newer", "another", "journal", "damaged", "text"],
)  # fmt: skip
def test_stores(tmp_path: Path, change: Callable[[Path], None], status: str, found: str) -> None:
    """A store is opened for reading, and what ails it is said."""
    path = tmp_path / "store.sqlite"
    Store(path).close()
    change(path)
    content = path.read_bytes()
    finding: Finding = look_at_store(path)
    assert finding.status == status
    assert found in finding.found
    assert bool(finding.advice) is (status != "ok")
    assert path.read_bytes() == content

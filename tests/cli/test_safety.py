"""What must stay where it belongs: the key, the records, and every connection."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Record, read_rows
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, cite, completion, error, judge_by_hash

WriteLog = Callable[..., Path]
KEY = "sk-proj-Zq7Distinctive0Key9mustNotLeak"
RECORD = "Zanzibar-4711-private"
"""Stands in every record."""


def records(count: int) -> list[Record]:
    """Records that hold a secret."""
    return [
        {
            "id": f"r-{number}",
            "question": f"Why {RECORD} {number}?",
            "contexts": [f"Since {RECORD} is {number}. Or so."],
        }
        for number in range(count)
    ]


@pytest.fixture(autouse=True)
def with_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment, as for a real endpoint."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def command(server: LoopbackServer, log: Path, *arguments: str | Path) -> list[str]:
    given = ["run", log, "--model", MODEL, "--base-url", server.url, "--timeout", "5", *arguments]
    return [sys.executable, "-m", "ctxrel.cli", *map(str, given)]


def run(given: list[str], **more: Any) -> "subprocess.CompletedProcess[str]":  # noqa: ANN401
    done = subprocess.run(given, capture_output=True, text=True, check=False, timeout=60, **more)
    assert "Traceback" not in done.stderr
    return done


def everything_in(folder: Path) -> bytes:
    """All bytes of all files, those that SQLite keeps beside the store included."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def echo(seen: Seen) -> str:
    """What a careless endpoint says: the key it was given and the record."""
    return f"bad: {seen.headers['Authorization']} for {seen.body['messages'][-1]['content']}"


def blamed(status: int, **details: Any) -> Callable[[Seen], Answer]:  # noqa: ANN401
    """An error that quotes the key and the record in all its parts."""
    return lambda seen: error(status, echo(seen), param=KEY, headers={"X-Request": KEY}, **details)


def page(status: int) -> Callable[[Seen], Answer]:
    """A gateway's page that quotes."""
    return lambda seen: Answer(status=status, body=f"<html>{echo(seen)}</html>".encode())


def redirect(status: int) -> Callable[[Seen], Answer]:
    """A redirect to another host that quotes the key."""
    target = f"http://user:{KEY}@127.0.0.2:9/{KEY}/v1?key={KEY}#{KEY}"
    return lambda _: Answer(status=status, headers={"Location": target})


CARELESS: dict[str, Callable[[Seen], Answer]] = {
    "400": blamed(400, code=KEY),
    "401": blamed(401, code="invalid_api_key"),
    "403": blamed(403),
    "404": blamed(404, code="model_not_found"),
    "422": blamed(422, type=KEY),
    "429 without credit": blamed(429, code="insufficient_quota"),
    "500": blamed(500),
    "403 page": page(403),
    "404 page": page(404),
    "502 page": page(502),
    "a value refused": lambda seen: error(
        400, f"Invalid value {echo(seen)}", param="temperature", code="invalid_value"
    ),
    "302": redirect(302),
    "307": redirect(307),
    "a redirect to nowhere": lambda _: Answer(status=302, headers={"Location": f"http://[{KEY}/v1"}),
    "prose": lambda _: completion("no JSON"),
    "refusal": lambda _: completion(None, refusal="I will not"),
    "reset": lambda _: Answer(fault="reset"),
}


@pytest.mark.parametrize("name", CARELESS)
@pytest.mark.parametrize("first", [True, False], ids=["at once", "later"])
def test_careless_endpoint(server: LoopbackServer, write_log: WriteLog, tmp_path: Path, name: str, first: bool) -> None:  # noqa: FBT001
    """Whatever an endpoint quotes: the key is in no file and no message, and the record in no message."""
    careless = CARELESS[name]
    server.script = lambda seen: cite(1) if not first and len(server.seen) < 4 else careless(seen)
    log = write_log(records(8))
    done = run([*command(server, log, "-c", "2", "--attempts", "1"), "--param", "temperature=0.5"])
    assert KEY not in done.stdout + done.stderr
    assert RECORD not in done.stdout + done.stderr
    assert {seen.headers["Authorization"] for seen in server.seen} == {f"Bearer {KEY}"}
    assert KEY.encode() not in everything_in(tmp_path / "log.ctxrel")


@pytest.mark.parametrize("careless", [401, 403, 404, 500, 302])
def test_careless_models(server: LoopbackServer, write_log: WriteLog, tmp_path: Path, careless: int) -> None:
    """The same for what is said where the model is looked up."""
    location = {"Location": f"http://127.0.0.2:9/{KEY}"} if careless == 302 else {}
    server.models = error(careless, f"bad: {KEY}", code=KEY, param=KEY, headers=location)
    done = run(command(server, write_log(records(2))))
    assert KEY not in done.stdout + done.stderr
    assert KEY.encode() not in everything_in(tmp_path / "log.ctxrel")


def test_nothing_shows_the_key_of_a_run(server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """While it runs, the key is neither on the command line nor in a file; afterwards in none either."""
    server.script = lambda seen: Answer(body=judge_by_hash(seen).body, delay=0.05)
    given = command(server, write_log(records(150)), "-c", "4", "--progress", "json")
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while len(server.seen) < 60:
            assert process.poll() is None
            time.sleep(0.005)
        proc = Path(f"/proc/{process.pid}")
        if proc.exists():
            shown = [(proc / name).read_bytes() for name in ("cmdline", "comm", "status")]
            shown += [path.read_bytes() for path in proc.glob("task/*/comm")]
            assert KEY.encode() not in b"".join(shown)
        assert (tmp_path / "log.ctxrel" / "store.sqlite-wal").stat().st_size
        assert KEY.encode() not in everything_in(tmp_path / "log.ctxrel")
        said = b"".join(process.communicate(timeout=60))
    assert process.returncode == 0
    assert KEY.encode() not in said + everything_in(tmp_path / "log.ctxrel")
    assert RECORD.encode() not in said


def test_a_bug_shows_no_key(server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """Even the traceback of a bug of ours holds neither key nor record."""
    code = (
        "import sys; from ctxrel.evaluators.judges import openai_chat\n"
        "def fail(body): raise ZeroDivisionError('a bug')\n"
        "openai_chat.decode_completion = fail\n"
        "from ctxrel.cli.app import main; main()"
    )
    given = [sys.executable, "-c", code, *command(server, write_log(records(2)))[3:]]
    done = subprocess.run(given, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "ZeroDivisionError: a bug" in done.stderr
    assert KEY not in done.stderr + done.stdout
    assert RECORD not in done.stderr + done.stdout
    assert KEY.encode() not in everything_in(tmp_path / "log.ctxrel")


def test_files_of_a_careless_user(server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """Under umask 000 every file of a run is its owner's alone, in mid-run and afterwards."""
    server.script = lambda seen: Answer(body=judge_by_hash(seen).body, delay=0.05)
    given = command(server, write_log(records(150)), "-c", "4", "--store", "kept/s.sqlite")
    (tmp_path / "kept").mkdir()
    seen: dict[str, int] = {}

    def look() -> None:
        for folder in ("log.ctxrel", "kept"):
            for path in (tmp_path / folder).glob("*"):
                seen[path.name] = seen.get(path.name, 0) | path.stat().st_mode & 0o077

    with subprocess.Popen(given, stderr=subprocess.DEVNULL, umask=0) as process:
        while process.poll() is None:
            try:
                look()
            except FileNotFoundError:  # renamed meanwhile
                continue
            time.sleep(0.01)
    assert process.returncode == 0
    look()
    expected = {
        ".lock",
        "results.jsonl",
        "results.jsonl.part",
        "summary.json",
        "s.sqlite",
        "s.sqlite-wal",
        "s.sqlite-shm",
    }
    assert expected <= seen.keys() <= expected | {"summary.json.part", "s.sqlite-journal"}
    assert {name for name, others in seen.items() if others} == set()


GUARD = """
import os, sys
allowed = {tuple_}
def guard(event, arguments):
    if event == "socket.connect":
        asked = (event, tuple(arguments[1][:2]) if isinstance(arguments[1], tuple) else arguments[1])
        good = asked[1] == allowed
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        asked = (event, arguments[0])
        good = arguments[0] in (allowed[0], None)
    elif event in ("socket.sendto", "socket.sendmsg", "socket.bind", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork"):
        asked, good = (event, repr(arguments)[:200]), False
    else:
        return
    with open({log!r}, "a") as stream:
        stream.write(f"{{'good' if good else 'BAD'}} {{asked}}\\n")
    if not good:
        raise PermissionError(f"not allowed: {{asked}}")
sys.addaudithook(guard)
"""


@pytest.mark.parametrize("live", [True, False], ids=["live", "offline"])
@pytest.mark.parametrize("ending", ["good", "redirects", "unknown model"])
def test_no_connection_but_to_the_endpoint(
    server: LoopbackServer,
    write_log: WriteLog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    live: bool,  # noqa: FBT001
    ending: str,
) -> None:
    """A run connects to its endpoint, looks up no other name and starts no other program."""
    port = int(server.url.split(":")[2].split("/")[0])
    (tmp_path / "guard").mkdir()
    attempts = tmp_path / "attempts"
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD.format(tuple_=("127.0.0.1", port), log=str(attempts)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "guard"))
    if ending == "redirects":
        server.script = lambda _: Answer(status=307, headers={"Location": "http://localhost:9/v1/chat/completions"})
    elif ending == "unknown model":
        server.script = lambda _: error(404, "gone", code="model_not_found")
    given = command(server, write_log(records(20)))
    done = run(given if live else [*given[: given.index("--model")], "--model", "offline"])
    assert done.returncode == (1 if live and ending != "good" else 0), done.stderr
    tried = attempts.read_text().splitlines() if attempts.exists() else []
    assert [line for line in tried if line.startswith("BAD")] == []
    assert bool(tried) == live


def test_redirects_are_not_followed(server: LoopbackServer, write_log: WriteLog) -> None:
    """Neither the key nor a record goes where an endpoint sends requests on to, not even on the same host."""
    with LoopbackServer() as other:
        server.script = lambda _: Answer(status=308, headers={"Location": f"{other.url}/chat/completions"})
        server.models = Answer(status=302, headers={"Location": f"{other.url}/models"})
        done = run(command(server, write_log(records(3))))
        assert (other.seen, other.model_requests) == ([], [])
    assert (done.returncode, len(server.seen)) == (1, 1)
    assert f"sends requests on to {other.url}/chat/completions (HTTP 308)" in done.stderr


NAMESPACE = """
import fcntl, json, socket, struct, subprocess, sys
sys.path.insert(0, {tests!r})
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 0x49))  # SIOCSIFFLAGS: up
from servers.loopback import LoopbackServer
with LoopbackServer() as server:
    given = [sys.executable, "-m", "ctxrel.cli", "run", "log.jsonl", "-m", "judge-1", "--base-url", server.url]
    done = subprocess.run(given, capture_output=True, text=True)
    print(json.dumps([done.returncode, len(server.seen), done.stderr]))
"""


@pytest.mark.skipif(
    not shutil.which("unshare") or bool(subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode),
    reason="network namespaces are not permitted here",
)  # fmt: skip
def test_without_a_network(write_log: WriteLog) -> None:
    """Where there is no network but the endpoint a run misses nothing."""
    write_log(records(20))
    code = NAMESPACE.format(tests=str(Path(__file__).parent.parent))
    done = subprocess.run(["unshare", "-rn", sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    code_, asked, said = json.loads(done.stdout)
    assert (code_, asked) == (0, 20), said
    assert len(read_rows(Path("log.ctxrel"))) == 20

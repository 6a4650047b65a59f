"""Runs under everything at once: faults of the endpoint, kills, losses of power, full disks, jumping clocks."""

import asyncio
import contextlib
import fcntl
import gc
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Record, read_rows, read_summary
from servers.killing import kill_often
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, completion, error, judge_by_hash

from ctxrel.cli.console import ProgressKind, Reporter
from ctxrel.cli.records import Fields
from ctxrel.cli.runs.job import Ending, carry_out
from ctxrel.cli.runs.lock import hold_lock
from ctxrel.cli.runs.plan import RunOptions, plan_run
from ctxrel.cli.runs.store import Store
from ctxrel.evaluators.costs.budget import Budget
from ctxrel.evaluators.errors import OutputLocked
from ctxrel.evaluators.judges.limiter import Limiter, Limits
from ctxrel.evaluators.judges.transport import Response, Transport

WriteLog = Callable[..., Path]
TIMEOUT = 2.0


def records(count: int) -> list[Record]:
    """Records that all differ."""
    return [
        {
            "id": f"r-{number}",
            "question": f"What is item {number}?",
            "contexts": [f"Item {number} is a thing. It weighs {number} g.", f"Nothing about {number * 7} here."],
        }
        for number in range(count)
    ]


def number_of(seen: Seen) -> int:
    """Which record a request is about."""
    return int(re.findall(r"\d+", seen.record["question"])[0])


@dataclass(frozen=True)
class Trouble:
    """Something an endpoint does instead of a good reply, and what an attempt that meets it fails with."""

    kind: str
    """None of the attempt's own where a reply came that does not fit."""
    answer: Answer
    paid: bool = False
    """Whether a reply came."""


BODY = completion('{"relevant_statements": []}').body
PAGE = Answer(status=502, body=b"<html><h1>502 Bad Gateway</h1></html>", headers={"Content-Type": "text/html"})
TROUBLES = {
    "500": Trouble("server_error", error(500, "The server had an error")),
    "502 with a page": Trouble("server_error", PAGE),
    "503 with a wait": Trouble("server_error", error(503, "overloaded", headers={"retry-after-ms": "20"})),
    "reset": Trouble("connection", Answer(fault="reset")),
    "hang": Trouble("timeout", Answer(fault="hang", body=BODY)),
    "trickle": Trouble("timeout", Answer(fault="trickle", body=BODY)),
    "cut body": Trouble("server_error", Answer(fault="cut", body=BODY)),
    "half of a JSON": Trouble("server_error", Answer(body=b'{"choices": [{"message": {"con')),
    "prose": Trouble("invalid_reply", completion("The first one, I should think."), paid=True),
    "a text for a list": Trouble("invalid_reply", completion('{"relevant_statements": "1"}'), paid=True),
    "nothing": Trouble("invalid_reply", completion(""), paid=True),
    "too little room": Trouble("truncated", completion('{"relevant_st', finish_reason="length"), paid=True),
    "429": Trouble("rate_limited", error(429, "slow down")),
    "429 at once": Trouble("rate_limited", error(429, "slow down", headers={"Retry-After": "0"})),
    "429 seconds": Trouble("rate_limited", error(429, "slow down", headers={"Retry-After": "1"})),
    "429 ms": Trouble("rate_limited", error(429, "slow down", headers={"retry-after-ms": "150"})),
    "filtered reply": Trouble("content_filter", completion("", finish_reason="content_filter"), paid=True),
    "filtered request": Trouble("content_filter", error(400, "filtered", code="content_filter")),
    "refusal": Trouble("refusal", completion(None, refusal="I cannot."), paid=True),
    "422": Trouble("rejected", error(422, "no")),
}  # fmt: skip
PASSING = [
    name for name, trouble in TROUBLES.items() if trouble.kind in ("server_error", "connection", "invalid_reply")
]
FOR_EVER = {
    "filtered reply": 1, "filtered request": 1, "refusal": 1, "422": 1, "prose": 3, "too little room": 2,
    "500": 5, "cut body": 5, "reset": 5,
}  # fmt: skip
"""How often each is asked for when it never ends."""
BURSTS = [name for name in TROUBLES if name.startswith("429")]


class Fate(NamedTuple):
    """What a record meets, always the same."""

    troubles: list[str]
    """One for each attempt."""
    kind: str | None
    """What it fails with at last; None where a good reply comes after all."""


def fate(number: int) -> Fate:
    """What the endpoint has in store for a record."""
    chance = random.Random(number)
    place = number % 500
    if number == 300:
        return Fate(["hang"] * 5, "timeout")
    if 0 <= place - 200 < len(FOR_EVER):
        name = list(FOR_EVER)[place - 200]
        return Fate([name] * FOR_EVER[name], TROUBLES[name].kind)
    if place in (301, 302):
        return Fate([chance.choice(["hang", "trickle"])], None)
    if chance.random() < 0.1:
        return Fate([chance.choice(PASSING) for _ in range(chance.choice([1, 1, 2]))], None)
    return Fate(["too little room"] if chance.random() < 0.01 else [], None)


class Storm:
    """The endpoint: every record has its fate, some good answers are slow, and now and then a rate limit is reached."""

    def __init__(self, requests: int = 500, seconds: float = 0.3) -> None:
        """After so many requests everybody is told to slow down for so many seconds."""
        self.met: list[Trouble | None] = []
        """What each request met; None is a good reply."""
        self._attempts: Counter[int] = Counter()
        self._requests, self._seconds = requests, seconds
        self._limited_until = 0.0

    def __call__(self, seen: Seen) -> Answer:
        now = time.monotonic()
        bursts, place = divmod(len(self.met), self._requests)
        if bursts and place == 0:
            self._limited_until = now + self._seconds
        if now < self._limited_until:
            return self._meet(TROUBLES[BURSTS[bursts % len(BURSTS)]])
        number = number_of(seen)
        troubles = fate(number).troubles
        attempt = self._attempts[number]
        self._attempts[number] += 1
        if attempt < len(troubles):
            return self._meet(TROUBLES[troubles[attempt]])
        self.met.append(None)
        return Answer(body=judge_by_hash(seen).body, delay=0.3 if number % 31 == 0 else 0.005)

    def _meet(self, trouble: Trouble) -> Answer:
        self.met.append(trouble)
        return trouble.answer

    def kinds(self) -> Counter[str]:
        """What attempts failed with, without the replies that did not fit."""
        return Counter(trouble.kind for trouble in self.met if trouble and not trouble.paid)


def command(server: LoopbackServer, log: Path, *arguments: str | Path) -> list[str]:
    """The command in a process of its own, in which a warning is an error."""
    given = ["run", log, "--model", MODEL, "--base-url", server.url, *arguments]
    return [sys.executable, "-W", "error", "-m", "ctxrel.cli", *map(str, given)]


EXPECTED_LINES = re.compile(
    r"""(?x) .*\.jsonl:\ question\ ←.* | [\d,]+\ rows,\ .* | judge:\ .* | evaluator\ +score\ .* | context_relevance\ .*
    | requests:\ .* | results:\ .*"""
)


def check_rows(rows: list[Record], count: int) -> None:
    """Every record is evaluated as without a storm, or has the kind that its fate is."""
    assert [row["id"] for row in rows] == [f"r-{number}" for number in range(count)]
    for number, row in enumerate(rows):
        kind = fate(number).kind
        told = row["error"]["kind"] if row["error"] else None
        assert (number, told, row["status"]) == (number, kind, "error" if kind else "evaluated")
    for row, record in zip(rows, records(count), strict=True):
        if row["error"] is None:
            sentences = [text for context in record["contexts"] for text in re.findall(r"[^.]+\.", context)]
            cited = [text.strip() for text in sentences if zlib.crc32(text.strip().encode()) % 3 == 0]
            assert row["relevant_statements"] == cited


def check_sums(summary: Record, storm: Storm, count: int) -> None:
    """The summary adds up with what the endpoint saw; on a busy machine an attempt may time out as well."""
    scripted, requests = storm.kinds(), summary["requests"]
    failed = Counter(requests["failed"])
    late = failed["timeout"] - scripted["timeout"]
    assert late >= 0
    assert sum(abs(failed[kind] - scripted[kind]) for kind in failed.keys() | scripted.keys()) <= 2 * late
    assert 0 <= requests["sent"] - len(storm.met) <= late
    fates = [fate(number) for number in range(count)]
    necessary = sum(len(troubles) + (kind is None) for troubles, kind in fates)
    assert necessary <= requests["sent"] <= necessary + failed["rate_limited"] + late
    assert requests["sent"] <= 1.5 * count
    assert summary["tokens"]["input_tokens"] == 100 * (requests["sent"] - failed.total())
    block = summary["evaluators"]["context_relevance"]
    assert (block["n"], block["evaluated"] + sum(block["errors"].values())) == (count, count)
    assert block["errors"] == Counter(kind for _, kind in fates if kind)
    assert (requests["reused"], requests["not_needed"]) == (0, 0)


def check_course(concurrency: Record, storm: Storm, most: int, fixed: int | None) -> None:
    """No more was in flight than the limit allowed, and its course holds together."""
    limits = [limit for _, limit in concurrency["course"]]
    assert most <= concurrency["highest"] == max(limits)
    assert (concurrency["lowest"], concurrency["last"]) == (min(limits), limits[-1])
    assert concurrency["course"] == sorted(concurrency["course"], key=lambda step: float(step[0]))
    assert storm.kinds()["rate_limited"] >= 1
    if fixed:
        assert (concurrency["fixed"], limits, concurrency["cuts"]) == (True, [fixed], 0)
    else:
        assert 1 <= concurrency["cuts"] <= storm.kinds()["rate_limited"]
        assert concurrency["highest"] > 8  # grown between the bursts, among errors


@pytest.mark.parametrize(("count", "fixed"), [(5000, None), (1000, 12)], ids=["found out", "fixed"])
def test_storm(server: LoopbackServer, write_log: WriteLog, tmp_path: Path, count: int, fixed: int | None) -> None:
    """Whatever the endpoint does: every record gets its verdict or the right kind, for few requests more, silently."""
    storm = server.script = Storm()
    server.patience = TIMEOUT / 2
    log = write_log(records(count))
    given = ["--timeout", str(TIMEOUT), *(["-c", str(fixed)] if fixed else [])]
    done = subprocess.run(command(server, log, *given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not EXPECTED_LINES.fullmatch(line)] == []
    check_rows(read_rows(tmp_path / "log.ctxrel"), count)
    summary = read_summary(tmp_path / "log.ctxrel")
    check_sums(summary, storm, count)
    check_course(summary["concurrency"], storm, server.most_in_flight, fixed)


def options(server: LoopbackServer, log: Path, **more: Any) -> RunOptions:  # noqa: ANN401
    """A run in this process."""
    given: dict[str, Any] = {
        "inputs": [str(log)], "evaluators": ["context_relevance"], "model": MODEL, "base_url": server.url,
        "api_key_env": "OPENAI_API_KEY", "parameters": {}, "concurrency": None, "fields": Fields(),
        "output": None, "store": None, "raise_on_failure": False, "timeout": TIMEOUT, "attempts": 5, "explain": False,
        "max_input_tokens": None,
    }  # fmt: skip
    return RunOptions(**{**given, **more})


def open_files() -> int:
    """How many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_storm_leaves_nothing_behind(
    server: LoopbackServer, write_log: WriteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the storm no task, thread, socket or file is left; none was started that the limit did not allow."""
    server.script = Storm(requests=60)
    in_flight = 0
    above: list[tuple[int, int]] = []
    limiters: list[Limiter] = []
    make, send = Limiter.__init__, Transport.post

    def remember(limiter: Limiter, limits: Limits, budget: Budget | None = None) -> None:
        make(limiter, limits, budget)
        limiters.append(limiter)

    async def count(transport: Transport, path: str, body: bytes) -> Response:
        nonlocal in_flight
        in_flight += 1
        limit = limiters[-1].limit
        if in_flight > (2 * limit + 1 if limiters[-1].growth.cuts else limit):  # cut in the moment it was let in
            above.append((in_flight, limit))
        try:
            return await send(transport, path, body)
        finally:
            in_flight -= 1

    monkeypatch.setattr(Limiter, "__init__", remember)
    monkeypatch.setattr(Transport, "post", count)
    said: list[str] = []

    async def run(log: Path) -> Ending:
        loop = asyncio.get_running_loop()
        loop.set_debug(True)  # what is never awaited, and what is called from the wrong thread
        loop.slow_callback_duration = float("inf")
        loop.set_exception_handler(lambda _, context: said.append(str(context)))
        reporter = Reporter(ProgressKind.NONE)
        ending = await carry_out(plan_run(options(server, log), reporter), reporter)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return ending

    asyncio.run(run(write_log(records(5), "first.jsonl")))  # what is imported and made once
    threads, files = threading.active_count(), open_files()
    ending = asyncio.run(run(write_log(records(299))))
    assert ending.error is None
    gc.collect()
    assert (said, above) == ([], [])
    patiently(lambda: open_files() <= files and threading.active_count() <= threads)


def patiently(holds: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_clock_that_jumps(server: LoopbackServer, write_log: WriteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of day goes back by a day, then forward by two, in mid-run: nothing waits for it, nothing is lost."""
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() + (0, -86400, 2 * 86400)[min(2, len(server.seen) // 100)])
    reporter = Reporter(ProgressKind.NONE)
    limited = {120: "Retry-After", 130: "retry-after-ms", 220: "Retry-After", 230: "retry-after-ms"}

    def script(seen: Seen) -> Answer:
        header = limited.get(number_of(seen))
        if header and not seen.number:
            return error(429, "slow", headers={header: "1"})
        return Answer(body=judge_by_hash(seen).body, delay=0.002)

    server.script = script
    log = write_log(records(300))
    plan = plan_run(options(server, log, rpm=100_000), reporter)
    ending = asyncio.run(asyncio.wait_for(carry_out(plan, reporter), 30))
    assert ending.error is None
    assert [row["status"] for row in read_rows(Path("log.ctxrel"))] == ["evaluated"] * 300
    assert len(server.seen) == 300 + len(limited)
    asyncio.run(carry_out(plan_run(options(server, log), reporter), reporter))
    assert len(server.seen) == 300 + len(limited)


def slowly(seen: Seen) -> Answer:
    return Answer(body=judge_by_hash(seen).body, delay=0.01)


def undisturbed(server: LoopbackServer, log: Path) -> bytes:
    """The rows of a run that nothing happened to."""
    subprocess.run(command(server, log, "-o", "whole", "--store", "whole.sqlite"), check=True, capture_output=True)
    server.seen.clear()
    server._counts.clear()
    return Path("whole/results.jsonl").read_bytes()


def test_kills(server: LoopbackServer, write_log: WriteLog) -> None:
    """Killed and stopped at random moments and gone on with: the same bytes, at most what was in flight twice.

    tests/benchmarks/kills.py does the same with a hundred kills.
    """
    server.script = slowly
    log = write_log(records(1500))
    whole = undisturbed(server, log)
    told = kill_often(server, command(server, log, "-o", "killed", "-c", "16"), kills=12, stops=3, requests=1500)
    assert told.stopped == [143] * 3
    assert told.errors == b""
    assert len(server.seen) <= 1500 + 12 * 16
    assert Path("killed/results.jsonl").read_bytes() == whole


def snapshot(process: "subprocess.Popen[bytes]", store: Path, folder: Path) -> Path:
    """The store's files as they are at a moment in the middle of the writing, file by file, without its locks."""
    folder.mkdir()
    process.send_signal(signal.SIGSTOP)  # or else a checkpoint may come between two of the files
    try:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        for name in (store.name, f"{store.name}-wal", f"{store.name}-shm"):
            shutil.copy(store.with_name(name), folder / name)
    finally:
        process.send_signal(signal.SIGCONT)
    return folder / store.name


def lose_power(store: Path, chance: random.Random) -> None:
    """What is not synchronised may be missing or anything: the end of the log, and the shared memory always."""
    wal = store.with_name(f"{store.name}-wal")
    data = wal.read_bytes()
    cut = chance.randrange(len(data) + 1)
    torn = chance.randbytes(min(len(data) - cut, 5000)) if chance.random() < 0.5 else b""
    wal.write_bytes(data[:cut] + torn)
    shared = store.with_name(f"{store.name}-shm")
    shared.write_bytes(chance.randbytes(shared.stat().st_size))


def test_power_is_lost(server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """A copy of the store from mid-write opens and goes on, also without the end of its log; the newest may be missing."""
    server.script = judge_by_hash
    count, chance = 2500, random.Random(11)
    log = write_log(records(count))
    whole = undisturbed(server, log)
    copies = []
    with subprocess.Popen(command(server, log, "-c", "16"), stderr=subprocess.DEVNULL) as process:
        for number in range(1, 25):
            patiently(lambda seen=number * count // 26: len(server.seen) >= seen)  # type: ignore[misc]
            answered = len(server.seen)
            copies.append(
                (answered, snapshot(process, tmp_path / "log.ctxrel" / "store.sqlite", tmp_path / f"c{number}"))
            )
        assert process.wait(60) == 0
    assert Path("log.ctxrel/results.jsonl").read_bytes() == whole
    kept = []
    for number, (answered, copy) in enumerate(copies):
        cut = number % 2 == 1
        if cut:
            lose_power(copy, chance)
        Store(copy).close()
        with contextlib.closing(sqlite3.connect(copy)) as opened:
            assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            kept.append(opened.execute("SELECT count(*) FROM replies").fetchone()[0])
        assert cut or kept[-1] >= answered - 16
    for number in (5, 18, 23):
        server.seen.clear()
        server._counts.clear()
        copy = copies[number][1]
        done = subprocess.run(
            command(server, log, "-o", f"on{number}", "--store", copy), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert len(server.seen) == count - kept[number]
        assert Path(f"on{number}/results.jsonl").read_bytes() == whole


def test_two_at_once_on_one_output(server: LoopbackServer, write_log: WriteLog) -> None:
    """Of two runs started at the same moment one judges, and the other says who does."""
    server.script = slowly
    given = command(server, write_log(records(300)), "-c", "4")
    with ExitStack() as both:
        runs = [both.enter_context(subprocess.Popen(given, stderr=subprocess.PIPE)) for _ in range(2)]
        told = {run.wait(60): run.stderr.read().decode() if run.stderr else "" for run in runs}
    assert told.keys() == {0, 75}
    assert re.fullmatch(
        r"(.*←.*\n)?ctxrel: another run \(process \d+ on .*\) works at 'log.ctxrel'; wait for it, then run the same command\n",
        told[75],
    )
    assert len(server.seen) == len(read_rows(Path("log.ctxrel"))) == 300


def test_the_holder_has_not_signed_yet(tmp_path: Path) -> None:
    """Whoever comes between the lock and the name in it waits for the name."""
    place = tmp_path / ".lock"
    with place.open("wb", buffering=0) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        signs = threading.Timer(0.2, held.write, [b'{"pid": 7, "host": "elsewhere"}'])
        signs.start()
        with pytest.raises(OutputLocked, match=r"another run \(process 7 on elsewhere\) works at"), hold_lock(tmp_path):
            pass
        signs.join()


def test_two_at_once_on_one_store(server: LoopbackServer, write_log: WriteLog) -> None:
    """Two runs from both ends of a log share what each pays for, but for what both had begun when they met."""
    server.script = slowly
    count = 800
    logs = [write_log(records(count)), write_log(records(count)[::-1], "reversed.jsonl")]
    with ExitStack() as both:
        runs = [
            both.enter_context(
                subprocess.Popen(command(server, log, "--store", "s.sqlite", "-c", "4"), stderr=subprocess.PIPE)
            )
            for log in logs
        ]
        told = [(run.wait(60), run.stderr.read().decode() if run.stderr else "") for run in runs]
    assert [code for code, _ in told] == [0, 0], told
    ahead = 2 * 4 + 64
    assert count <= len(server.seen) <= count + 2 * ahead
    rows = [read_rows(Path(f"{log.stem}.ctxrel")) for log in logs]
    scores = [{row["id"]: (row["relevant_statements"], row["usage"]) for row in some} for some in rows]
    assert scores[0] == scores[1]
    assert len(scores[0]) == count


def limit_files(size: int) -> Callable[[], None]:
    """For a process that is about to start: no file grows beyond so many bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def stored(path: Path) -> int:
    """The replies in a store that is whole."""
    with contextlib.closing(sqlite3.connect(path)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return int(opened.execute("SELECT count(*) FROM replies").fetchone()[0])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 700 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=700k", "none", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not permitted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def last_words(done: "subprocess.CompletedProcess[str]") -> str:
    """The sentence a run ends with, if it is one."""
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("ctxrel: ") == 1
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def run_briefly(given: list[str], **more: Any) -> "subprocess.CompletedProcess[str]":  # noqa: ANN401
    return subprocess.run(given, capture_output=True, text=True, check=False, timeout=60, **more)


def test_store_on_a_full_disk(server: LoopbackServer, write_log: WriteLog, small_disk: Path) -> None:
    """A store that has no room left ends the run with a sentence; it is whole, and with room the run goes on."""
    count, store = 3000, small_disk / "s.sqlite"
    given = command(server, write_log(records(count)), "-c", "8", "--store", store)
    said = last_words(run_briefly(given))
    assert re.fullmatch(rf"ctxrel: cannot use the store '{store}': .*(full|disk I/O error); another .* --store", said)
    kept = stored(store)
    assert len(server.seen) - 8 <= kept <= len(server.seen) < count
    assert read_summary(Path("log.ctxrel"))["status"] == "failed"
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    assert run_briefly(given).returncode == 0
    assert len(server.seen) <= count + 8
    assert len(read_rows(Path("log.ctxrel"))) == stored(store) == count


def test_store_that_may_not_grow(server: LoopbackServer, write_log: WriteLog) -> None:
    """The same where a file's size is limited; the rows go elsewhere."""
    count = 3000
    given = command(server, write_log(records(count)), "-c", "8", "--store", "s.sqlite", "-o", "-")
    said = last_words(run_briefly(given, preexec_fn=limit_files(400_000)))
    assert said.startswith("ctxrel: cannot use the store 's.sqlite': ")
    assert len(server.seen) - 8 <= stored(Path("s.sqlite")) <= len(server.seen) < count
    done = run_briefly(given)
    assert (done.returncode, done.stdout.count("\n"), len(server.seen) <= count + 8) == (0, count, True)


@pytest.mark.parametrize("where", ["/dev/full", "disk"])
def test_results_on_a_full_disk(
    server: LoopbackServer, write_log: WriteLog, request: pytest.FixtureRequest, where: str
) -> None:
    """Rows that cannot be written end the run with a sentence; every reply is in the store, and the run goes on."""
    count = 3000
    folder = request.getfixturevalue("small_disk") / "run" if where == "disk" else Path("run")
    folder.mkdir()
    part = folder / "results.jsonl.part"
    if where == "/dev/full":
        part.symlink_to(where)
    given = command(server, write_log(records(count)), "-c", "8", "--store", "s.sqlite", "-o", folder)
    said = last_words(run_briefly(given))
    assert said == f"ctxrel: cannot write '{part}': No space left on device; what was judged is kept in the store"
    asked = len(server.seen)
    assert stored(Path("s.sqlite")) == asked < count
    if where == "disk":
        subprocess.run(["mount", "-o", "remount,size=50m", str(folder.parent)], check=True)
    else:
        assert read_summary(folder)["status"] == "failed"
        part.unlink()
    assert run_briefly(given).returncode == 0
    assert len(server.seen) == len(read_rows(folder)) == count


def test_a_store_that_is_held_for_a_while(server: LoopbackServer, write_log: WriteLog) -> None:
    """While another program holds the store answers are read in time, and nothing is asked again."""
    count = 60
    server.script = lambda seen: Answer(body=judge_by_hash(seen).body, delay=0.6 if number_of(seen) >= 20 else 0)
    given = command(server, write_log(records(count)), "-c", "60", "--timeout", "2.5", "--store", "s.sqlite")
    with subprocess.Popen(given, stderr=subprocess.PIPE) as process:
        patiently(lambda: len(server.seen) >= 40)
        with contextlib.closing(sqlite3.connect("s.sqlite", isolation_level=None, timeout=30)) as other:
            other.execute("BEGIN IMMEDIATE")
            time.sleep(3.5)
            other.execute("COMMIT")
        assert process.stderr
        assert (process.wait(30), process.stderr.read().count(b"timeout")) == (0, 0)
    assert len(server.seen) == stored(Path("s.sqlite")) == count


def test_stopped_and_continued(server: LoopbackServer, write_log: WriteLog) -> None:
    """A process that was stopped for longer than the timeout reads the answers that have come meanwhile."""
    count = 60
    server.script = lambda seen: Answer(body=judge_by_hash(seen).body, delay=0.5 if number_of(seen) else 0)
    given = command(server, write_log(records(count)), "-c", "60", "--timeout", "2")
    with subprocess.Popen(given, stderr=subprocess.PIPE) as process:
        patiently(lambda: len(server.seen) >= count)
        process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        process.send_signal(signal.SIGCONT)
        assert process.stderr
        assert process.wait(30) == 0, process.stderr.read()
    assert len(server.seen) == count
    assert read_summary(Path("log.ctxrel"))["requests"]["failed"] == {}

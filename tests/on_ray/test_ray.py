"""The same run on Ray: the same rows, whoever is killed on the way, and limits that hold over all workers."""

import gzip
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import RunCommand, read_rows, read_summary
from ray_runs import IN_FLIGHT, Killer, on_ray, records, rows_of
from servers.cluster import KEY, MARKS, RayCluster
from servers.files import FileServer
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, judge_by_hash

pytestmark = [*MARKS, pytest.mark.filterwarnings("default")]
WriteLog = Callable[..., Path]
NOWHERE = "127.0.0.1:1"
"""An address without a cluster."""
SECRET = "s3cr3t-signature"  # noqa: S105  # stands for one


def start(arguments: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "ctxrel.cli", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def wait_for(server: LoopbackServer, count: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 240
    while len(server.seen) < count and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert len(server.seen) >= count


def test_same_rows(
    cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """5,000 records in files of two formats give the rows and the figures of a run in one process."""
    folder = tmp_path / "logs"
    folder.mkdir()
    write_log(records(3000), "logs/a.jsonl")
    pq.write_table(pa.Table.from_pylist(records(2000, first=3000)), folder / "b.parquet", row_group_size=300)
    judge = ["-m", MODEL, "--base-url", server.url, "-c", "8"]
    alone = ctxrel("run", folder, "-o", "alone", "--format", "parquet", *judge, timeout=300)
    assert alone.returncode == 0, alone.stderr
    server.most_in_flight = 0
    done = ctxrel(*on_ray(cluster, server, folder, "-o", "ray"), timeout=300)
    assert done.returncode == 0, done.stderr
    assert rows_of(tmp_path / "ray") == pq.read_table(tmp_path / "alone" / "results.parquet").to_pylist()
    assert len(server.seen) == 10_000
    assert server.most_in_flight <= IN_FLIGHT
    one, other = read_summary(tmp_path / "alone"), read_summary(tmp_path / "ray")
    for name in ("status", "evaluators", "judge", "input", "requests", "tokens", "setting"):
        assert other[name] == one[name], name
    assert "WARNING" not in done.stderr
    assert "Deprecation" not in done.stderr


def test_selection(
    cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """Conditions, a sample by a field, carried fields and several evaluators are what they are in one process."""
    log = write_log(
        [{**record, "lang": "ko" if n % 3 else "en", "meta": {"n": n}} for n, record in enumerate(records(300))]
    )
    chosen = ["--where", "id!=r-7", "--sample", "45", "--sample-by", "lang", "--keep", "meta.n"]
    chosen += ["-e", "context_relevance"]
    chosen += ["-e", "context_relevance_graded"]
    judge = ["-m", MODEL, "--base-url", server.url]
    assert ctxrel("run", log, "-o", "alone", *judge, *chosen).returncode == 0
    done = ctxrel(*on_ray(cluster, server, log, "-o", "ray", *chosen), timeout=300)
    assert done.returncode == 0, done.stderr
    key = ("index", "evaluator")
    wanted = sorted(read_rows(tmp_path / "alone"), key=lambda row: [row[name] for name in key])
    found = sorted(rows_of(tmp_path / "ray"), key=lambda row: [row[name] for name in key])
    assert [row["score"] for row in found] == [row["score"] for row in wanted]
    assert [[row[name] for name in key] for row in found] == [[row[name] for name in key] for row in wanted]
    one, other = read_summary(tmp_path / "alone"), read_summary(tmp_path / "ray")
    assert other["evaluators"] == one["evaluators"]
    assert other["input"] == one["input"]
    new = write_log(records(100, first=1000), "new.jsonl")
    by_one, by_ray = (
        json.loads(ctxrel("estimate", new, "--json", "--store", tmp_path / folder / "store.sqlite", *judge).stdout)
        for folder in ("alone", "ray")
    )
    assert by_ray["tokens"] == by_one["tokens"]
    assert by_ray["tokens"] != json.loads(ctxrel("estimate", new, "--json", *judge).stdout)["tokens"]


def test_addresses(
    cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """Logs behind addresses give the rows of one process, no signature is told, and every command reads the rows.

    The same command again finds nothing to do, and Ray is not asked.
    """
    (tmp_path / "date=7").mkdir()
    write_log(records(150), "date=7/log.jsonl")
    pq.write_table(pa.Table.from_pylist(records(100, first=150)), tmp_path / "log.parquet", row_group_size=30)
    judge = ["-m", MODEL, "--base-url", server.url]
    with FileServer() as files:
        inputs = [f"{files.url}/date=7/log.jsonl?sig={SECRET}", f"file://{tmp_path}/log.parquet"]
        given = [*inputs, "--keep", "date"]
        alone = ctxrel("run", *given, "-o", "alone", "--format", "parquet", *judge, timeout=300)
        assert alone.returncode == 0, alone.stderr
        command = on_ray(cluster, server, *given, "-o", "onray")
        done = ctxrel(*command, timeout=300)
        assert done.returncode == 0, done.stderr
        asked, (part,) = len(server.seen), (tmp_path / "onray" / "results").iterdir()
        written = part.stat().st_mtime_ns
        again = ctxrel(*command, "--ray-address", NOWHERE)
    assert rows_of(tmp_path / "onray") == pq.read_table(tmp_path / "alone" / "results.parquet").to_pylist()
    assert again.returncode == 0, again.stderr
    assert "nothing has changed" in again.stderr
    assert (len(server.seen), part.stat().st_mtime_ns) == (asked, written)
    one, other = read_summary(tmp_path / "alone"), read_summary(tmp_path / "onray")
    for name in ("evaluators", "input", "setting"):
        assert other[name] == one[name], name
    assert (other["requests"]["sent"], other["requests"]["reused"], other["engine"]["name"]) == (0, 250, "ray")
    for path in [*cluster.folder.rglob("*"), *(tmp_path / "onray").rglob("*")]:
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in done.stderr + done.stdout
    _compare_commands(ctxrel, tmp_path)


def _compare_commands(ctxrel: RunCommand, tmp_path: Path) -> None:
    """What reads finished runs says the same of the two."""
    labels = "".join(f'{{"id": "r-{number}", "label": {number % 2}}}\n' for number in range(0, 250, 5))
    (tmp_path / "labels.jsonl").write_text(labels, encoding="utf-8")
    for command in (["check", "--fail-under", "0.99"], ["calibrate", "--labels", "labels.jsonl"], ["report"]):
        one, other = (ctxrel(command[0], name, *command[1:]) for name in ("alone", "onray"))
        assert (other.returncode, other.stdout) == (one.returncode, one.stdout.replace("alone", "onray"))
        assert other.stderr == one.stderr.replace("alone", "onray")
    (compared,) = json.loads(ctxrel("compare", "alone", "onray", "--json").stdout)["comparisons"]
    block = compared["evaluators"]["context_relevance"]
    assert (block["joined"], block["up"], block["down"], block["changed"]) == (250, 0, 0, [])
    trend = json.loads(ctxrel("trend", "alone", "onray", "--json").stdout)["evaluators"]["context_relevance"]
    assert len({night["score"] for night in trend["nights"]}) == 1


def test_bad_records(
    cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """Empty files, lines that are no records and files of records that cannot be judged end as in one process."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(b"")
    (folder / "b.jsonl").write_bytes(b'{"question": "a", "contexts": ["b c."]}\nno JSON\n{"question": "a"}\n')
    write_log([*records(1), *({"question": f"Is it {n}?", "contexts": 7} for n in range(70))], "logs/c.jsonl")
    (folder / "d.jsonl").write_bytes(b"\n\n")
    alone = ctxrel("run", folder, "-o", "alone", "--format", "parquet", "-m", MODEL, "--base-url", server.url)
    done = ctxrel(*on_ray(cluster, server, folder, "-o", "onray"), timeout=300)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (alone.returncode, alone.stderr.splitlines()[-1])
    assert done.returncode == 3, done.stderr
    assert rows_of(tmp_path / "onray") == pq.read_table(tmp_path / "alone" / "results.parquet").to_pylist()
    one, other = read_summary(tmp_path / "alone"), read_summary(tmp_path / "onray")
    for name in ("status", "evaluators", "input", "gates"):
        assert other[name] == one[name], name


@pytest.mark.parametrize("wrong", ["cut", "none chosen"])
def test_logs_that_cannot_be_read(
    cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path, wrong: str
) -> None:
    """What one process says of a log it says on Ray, before anything is sent."""
    log, chosen = write_log(records(2000)), ["--where", "id=nobody"]
    if wrong == "cut":
        log, chosen = tmp_path / "log.jsonl.gz", []
        packed = gzip.compress((tmp_path / "log.jsonl").read_bytes())
        log.write_bytes(packed[: len(packed) // 2])
    alone = ctxrel("run", log, "-o", "alone", "-m", MODEL, "--base-url", server.url, *chosen)
    done = ctxrel(*on_ray(cluster, server, log, "-o", "onray", *chosen))
    assert done.returncode == alone.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1] == alone.stderr.splitlines()[-1]
    one, other = read_summary(tmp_path / "alone"), read_summary(tmp_path / "onray")
    assert (other["status"], other["error"], other["requests"]["sent"]) == (one["status"], one["error"], 0)
    assert other["evaluators"]["context_relevance"]["n"] == 0
    assert wrong == "cut" or other["evaluators"] == one["evaluators"]


def test_worker_killed(
    cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A worker that is killed is replaced, and nothing is asked twice beyond what was in flight."""
    killer = server.script = Killer(lambda _: len(server.seen) == 400)
    done = ctxrel(*on_ray(cluster, server, write_log(records(1000))), timeout=300)
    assert done.returncode == 0, done.stderr
    assert killer.killed == 1
    assert [row["id"] for row in rows_of(tmp_path / "log.ctxrel")] == [f"r-{n}" for n in range(1000)]
    assert {row["status"] for row in rows_of(tmp_path / "log.ctxrel")} == {"evaluated"}
    assert len(server.seen) <= 1000 + IN_FLIGHT
    assert read_summary(tmp_path / "log.ctxrel")["engine"]["starts"] == 3


def test_poisoned_record(
    cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A record that kills each worker that judges it becomes an error row; all others are judged."""
    killer = server.script = Killer(lambda seen: seen.record["question"] == "What is item 77?")
    done = ctxrel(*on_ray(cluster, server, write_log(records(300))), timeout=300)
    assert done.returncode == 0, done.stderr
    assert killer.killed == 3
    rows = rows_of(tmp_path / "log.ctxrel")
    assert [row["id"] for row in rows] == [f"r-{n}" for n in range(300)]
    (failed,) = [row for row in rows if row["error"]]
    assert failed["id"] == "r-77"
    assert failed["error"]["kind"] == "bad_input"
    assert len(server.seen) <= 300 + 3 * IN_FLIGHT


def test_driver_killed(
    cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """Nothing that was answered when the command was killed is asked again by the next one."""
    server.script = lambda seen: Answer(body=judge_by_hash(seen).body, delay=0.02)
    command = on_ray(cluster, server, write_log(records(1000)))
    with start(command) as run:
        wait_for(server, 300, run)
        run.kill()
    done = ctxrel(*command, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in rows_of(tmp_path / "log.ctxrel")] == [f"r-{n}" for n in range(1000)]
    assert len(server.seen) <= 1000 + IN_FLIGHT
    assert read_summary(tmp_path / "log.ctxrel")["requests"]["reused"] >= 300 - IN_FLIGHT
    assert not list((tmp_path / "log.ctxrel" / "stores").iterdir())


def test_signal(
    cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """SIGTERM lets what is in flight finish; the rows so far are there, and the same command goes on."""
    server.script = lambda seen: Answer(body=judge_by_hash(seen).body, delay=0.02)
    command = on_ray(cluster, server, write_log(records(1000)))
    with start(command) as run:
        wait_for(server, 300, run)
        run.send_signal(signal.SIGTERM)
        _, said = run.communicate(timeout=120)
    assert run.returncode == 143, said.decode()
    summary = read_summary(tmp_path / "log.ctxrel")
    assert (summary["status"], summary["results"]) == ("interrupted", "results.part")
    assert len(server.seen) < 1000
    assert summary["requests"]["sent"] == len(server.seen)
    done = ctxrel(*command, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(server.seen) == 1000
    assert len(rows_of(tmp_path / "log.ctxrel")) == 1000


def test_rpm(cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A cap on requests per minute is one over all workers."""
    arrived: list[float] = []

    def script(seen: Seen) -> Answer:
        arrived.append(time.monotonic())
        return judge_by_hash(seen)

    server.script = script
    done = ctxrel(*on_ray(cluster, server, write_log(records(80)), "--rpm", "600"), timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(arrived) == 80
    assert arrived[-1] - arrived[0] >= (80 - 20) / 10


def test_max_cost(
    cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A budget is one over all workers, over the runs, and over the death of a worker; one reply passes it at most."""
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        f"{{'127.0.0.1': {{models: {{{MODEL}: {{input: 10, output: 0}}}}}}}}", encoding="utf-8"
    )  # 0.001 USD a reply, and 0.03 at most
    killer = server.script = Killer(lambda _: len(server.seen) == 80)
    command = on_ray(cluster, server, write_log(records(500)), "--prices", prices)
    done = ctxrel(*command, "--max-cost", "0.2", timeout=300)
    assert done.returncode == 75, done.stderr
    assert killer.killed == 1
    assert "--max-cost 0.2 are spent" in done.stderr.splitlines()[-1]
    summary = read_summary(tmp_path / "log.ctxrel")
    assert summary["status"] == "budget"
    assert 0.2 <= summary["cost"]["total"] < 0.2015
    asked = len(server.seen)
    assert 200 <= asked <= 201 + IN_FLIGHT  # the worker's replies on their way
    again = ctxrel(*command, "--max-cost", "0.2", timeout=300)
    assert again.returncode == 75
    assert len(server.seen) == asked
    done = ctxrel(*command, "--max-cost", "2", timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(server.seen) == asked + 500 - round(summary["cost"]["total"] / 0.001)


def test_refused_key(cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """What no request can do without ends the run, in one sentence."""
    server.script = lambda _: Answer(status=401, body={"error": {"message": "Incorrect API key provided"}})
    done = ctxrel(*on_ray(cluster, server, write_log(records(200))), timeout=300)
    assert done.returncode == 1
    assert "API key" in done.stderr.splitlines()[-1]


def test_nothing_is_told(cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """The key reaches the endpoint from the workers' own environment; neither it nor a record is in a file of Ray's."""
    log = write_log([{**record, "question": f"Zanzibar {record['id']}?"} for record in records(50)])
    done = ctxrel(*on_ray(cluster, server, log), timeout=300)
    assert done.returncode == 0, done.stderr
    assert {seen.headers["Authorization"] for seen in server.seen} == {f"Bearer {KEY}"}
    for path in cluster.folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert KEY.encode() not in data, path
            assert b"Zanzibar" not in data, path


def test_cluster_of_its_own(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """Without an address Ray lasts as long as the run."""
    done = ctxrel("run", write_log(records(200)), "-m", "offline", "--engine", "ray", "--ray-workers", "1", timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(rows_of(tmp_path / "log.ctxrel")) == 200
    assert json.loads((tmp_path / "log.ctxrel" / "summary.json").read_text())["engine"]["workers"] == 1

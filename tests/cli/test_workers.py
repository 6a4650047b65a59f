"""Several workers of one run, without Ray: what they share, what each keeps, and which record is to blame."""

import asyncio
import random
import threading
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import RunCommand
from crew import NEEDS, RUN, Crew, records
from servers.loopback import Answer, LoopbackServer, Seen, error, judge_by_hash

from ctxrel.cli.records import Fields, open_log
from ctxrel.cli.records.paths import FieldPath
from ctxrel.cli.records.pieces import pieces_of
from ctxrel.cli.records.sampling import Selection
from ctxrel.cli.records.where import parse_condition
from ctxrel.cli.runs import engine
from ctxrel.cli.runs.engine import Engine, results_format
from ctxrel.cli.runs.finished import hash_of
from ctxrel.cli.runs.folder import Format, publish
from ctxrel.cli.runs.gate import Gate
from ctxrel.cli.runs.packed import pack, unpack
from ctxrel.cli.runs.shares import Amounts, Dealer
from ctxrel.cli.runs.sizing import sizes_for
from ctxrel.cli.runs.store import Store
from ctxrel.cli.runs.survey import survey
from ctxrel.cli.runs.suspects import GROUP, Suspects
from ctxrel.cli.runs.worker_store import WorkerStore, merge_stores, store_of
from ctxrel.evaluators.errors import Failure, FailureKind, UsageError
from ctxrel.evaluators.replies import Reply, Usage

WriteLog = Callable[..., Path]


@pytest.mark.parametrize("total", [3, 8, 100])
def test_shares(total: int) -> None:
    """At no moment do workers hold more than there is, whoever reports when; busy ones get what idle ones leave."""
    chance = random.Random(total)
    dealer = Dealer(Amounts(total, 600.0, None))
    held = {name: Amounts(0, 0.0, None) for name in "abc"}
    for name in held:
        dealer.join(name)
    for _ in range(500):
        name = chance.choice("abc")
        used = Amounts(chance.randint(0, held[name].slots or 0), held[name].rpm, None)
        held[name] = dealer.deal(name, used, busy=chance.random() < 0.7)
        assert sum(share.slots or 0 for share in held.values()) <= total
        assert sum(share.rpm or 0 for share in held.values()) <= 600.0 + 1e-6
    for _ in range(3):
        held = {name: dealer.deal(name, held[name], busy=name == "a") for name in held}
    assert held["a"].slots == total - 2
    assert held["a"].rpm == pytest.approx(600 / 1.2)


def test_share_of_a_worker_that_starts_anew() -> None:
    """A process that died holds nothing any more."""
    dealer = Dealer(Amounts(8))
    dealer.join("a")
    assert dealer.deal("a", Amounts(0), busy=True).slots == 8
    dealer.join("a")
    dealer.join("b")
    assert dealer.deal("b", Amounts(0), busy=True).slots == 4


def test_suspects() -> None:
    """After a death with others, one in a group and one alone a record is guilty; its neighbours are not."""
    suspects = Suspects()
    batch = list(range(20))
    assert suspects.begin("a", 0, batch).groups() == []
    second = suspects.begin("a", 0, batch)
    assert second.workers == ("a",)
    groups = second.groups()
    assert [len(group) for group in groups] == [GROUP, GROUP, 4]
    suspects.judge(0, groups[0])
    third = suspects.begin("b", 0, batch)
    assert third.groups() == [list(range(8, 16)), list(range(16, 20)), *([n] for n in range(8))]
    suspects.judge(0, [5])
    fourth = suspects.begin("b", 0, batch)
    assert fourth.guilty() == {5}
    assert [5] not in fourth.groups()
    suspects.end(0)
    assert suspects.begin("a", 0, batch).deaths == {}


async def test_gate() -> None:
    """Nobody is inside beside the one that wants to be alone, and who comes while it waits comes after it."""
    gate = Gate()
    order: list[str] = []

    async def shared(name: str) -> None:
        async with gate.shared():
            order.append(name)
            await asyncio.sleep(0.01)
            order.append(name)

    async def alone() -> None:
        async with gate.exclusive():
            order.append("alone")
            await asyncio.sleep(0.01)
            order.append("alone")

    first = [asyncio.create_task(shared(name)) for name in "ab"]
    await asyncio.sleep(0)
    rest = [asyncio.create_task(alone()), asyncio.create_task(shared("c"))]
    await asyncio.gather(*first, *rest)
    assert order[4:] == ["alone", "alone", "c", "c"]


@pytest.mark.parametrize(
    "selection",
    [
        Selection(),
        Selection(limit=130),
        Selection(where=[parse_condition("lang=ko")], limit=120),
        Selection(sample=40, seed=2),
        Selection(sample=20, by=FieldPath("lang"), where=[parse_condition("id!=r-7")]),
    ],
    ids=["all", "limit", "where", "sample", "by"],
)
def test_pieces(write_log: WriteLog, tmp_path: Path, selection: Selection) -> None:
    """Readers of single files, in other processes, read the records that one reader of all of them reads."""
    rows = records(300)
    (tmp_path / "logs").mkdir()
    write_log([*rows[:100], {"broken": 1}], "logs/a.jsonl")
    pq.write_table(pa.Table.from_pylist(rows[100:200]), tmp_path / "logs" / "b.parquet")
    write_log(rows[200:], "logs/c.jsonl")
    log = open_log([str(tmp_path / "logs")], Fields(), NEEDS, selection=selection)
    log.draw()
    wanted = [(position.record, position.stratum) for position in log.records()]
    found = survey(log)
    assert found.records == len(wanted)
    positions = [unpack(pack(position)) for piece in found.pieces for position in piece.records()]
    assert [(position.record, position.stratum) for position in positions] == wanted
    assert pieces_of(log, wanted[-1][0].index)[0].first == 0


def reply(text: str) -> Reply:
    return Reply(text=text, finish_reason="stop", model="m", usage=Usage(10, 1))


def test_stores_are_moved(tmp_path: Path) -> None:
    """What workers kept is in the run's store afterwards, once, whether or not the moving was cut short."""
    stores, path = tmp_path / "stores", tmp_path / "store.sqlite"
    stores.mkdir()
    run_store = Store(path)
    run_store.begin_run(*RUN)
    run_store.keep_reply(b"old", reply("before"))
    run_store.settle()
    one = WorkerStore(stores, "1", path, run=RUN, alone=True)
    two = WorkerStore(stores, "2", path, run=RUN, alone=True)
    one.keep_reply(b"k", reply("first"))
    two.keep_reply(b"k", reply("second"))
    two.keep_failure(b"f", Failure(FailureKind.TIMEOUT, "late"))
    two.keep_unanswered(Usage(5, 5))
    assert [each.text for each in two.replies(b"old")] == ["before"]
    assert [each.text for each in two.replies(b"k")] == ["second"]
    two.consult("1")
    assert [each.text for each in two.replies(b"k")] == ["first", "second"]
    two.close()
    one.close()
    kept = store_of(stores, "1").read_bytes()
    assert merge_stores(stores, path) == 2
    store_of(stores, "1").write_bytes(kept)  # killed before it was removed
    assert merge_stores(stores, path) == 0
    assert sorted(str(each.text) for each in run_store.replies(b"k")) == ["first", "second"]
    assert run_store.failure(b"f") is FailureKind.TIMEOUT
    assert run_store.unanswered(".") == Usage(5, 5)
    assert len(list(run_store.paid_by(1.0))) == 3
    assert not list(stores.iterdir())
    run_store.close()


async def test_workers_share_slots(server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """All records have rows, and no more requests were in flight than the workers may have together."""
    server.script = lambda seen: Answer(body=judge_by_hash(seen).body, delay=0.01)
    crew = Crew(server, tmp_path, Amounts(6))
    lines = await crew.judge(write_log(records(200)))
    assert [line.position for line in lines] == list(range(200))
    assert server.most_in_flight <= 6
    assert (await crew.coordinator.progress()).sent == len(server.seen) == 200


async def test_a_share_in_use(server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """A worker that starts later gets no more than what the others have let go of: what is in flight is not."""
    full = threading.Event()

    def script(seen: Seen) -> Answer:
        if server.in_flight == 6:
            full.set()
        return Answer(body=judge_by_hash(seen).body, delay=0.7)

    server.script = script
    crew = Crew(server, tmp_path, Amounts(6))
    positions = list(open_log([str(write_log(records(40)))], Fields(), NEEDS).records())
    first = asyncio.create_task(crew.workers[0].judge(positions[:30]))
    assert await asyncio.to_thread(full.wait, 60)
    lines = await crew.workers[1].judge(positions[30:]) + await first
    assert len(lines) == 40
    assert server.most_in_flight == 6
    for worker in crew.workers:
        await worker.close()


async def test_rate_limit_slows_all(server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """A rate limit that one worker meets is waited out by the other one as well."""
    server.script = lambda seen: (
        error(429, "Rate limit reached", headers={"Retry-After": "2"})
        if len(server.seen) == 60
        else Answer(body=judge_by_hash(seen).body, delay=0.02)
    )
    crew = Crew(server, tmp_path, Amounts(4))
    lines = await crew.judge(write_log(records(200)))
    assert all(line.outcome.evaluation for line in lines)
    assert [worker._asker.limiter._resume_at > 0 for worker in crew.workers] == [True, True]
    assert (await crew.coordinator.progress()).failed == {FailureKind.RATE_LIMITED: 1}


async def test_an_error_ends_all(server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """What no request can do without ends the run of all workers, and nobody raises."""
    server.script = lambda seen: (
        judge_by_hash(seen) if len(server.seen) < 50 else error(401, "Incorrect API key provided")
    )
    crew = Crew(server, tmp_path, Amounts(4))
    lines = await crew.judge(write_log(records(200)))
    assert len(lines) == 49
    told = (await crew.coordinator.progress()).error
    assert told is not None
    assert "key" in str(told)


async def test_first_failure(server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """With --raise-on-failure the first failed record ends the run, and is named."""
    server.script = lambda seen: error(400, "no") if seen.record["question"] == "Item 33?" else judge_by_hash(seen)
    crew = Crew(server, tmp_path, Amounts(2), raise_on_failure=True)
    await crew.judge(write_log(records(200)))
    assert "record 'r-33'" in str((await crew.coordinator.progress()).error)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ray-workers", "2"], "--ray-workers needs --engine ray"),
        (["--ray-address", "auto"], "--ray-address needs --engine ray"),
    ],
    ids=["workers", "address"],
)
def test_options_of_another_engine(ctxrel: RunCommand, write_log: WriteLog, arguments: list[str], said: str) -> None:
    """Options of Ray alone are a mistake."""
    done = ctxrel("run", write_log(records(1)), "-m", "offline", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize("package", ["ray", "pandas"])
def test_missing_package(monkeypatch: pytest.MonkeyPatch, write_log: WriteLog, tmp_path: Path, package: str) -> None:
    """Without Ray, or with Ray alone, what is missing is named before anything is written."""

    def installed(name: str) -> str:
        if name == package:
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(engine, "version", installed)
    log = open_log([str(write_log(records(1)))], Fields(), NEEDS)
    with pytest.raises(UsageError, match=rf"needs the package {package}; pip install 'ctxrel\[ray\]'"):
        engine.check_engine(engine.Engine.RAY, folder=tmp_path, log=log, local=None)


@pytest.mark.parametrize("where", ["option", "config"])
def test_ray_writes_parquet(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path, where: str) -> None:
    """JSON Lines, asked for in so many words, are refused; by default the engine decides."""
    (tmp_path / "ctxrel.toml").write_text('[run]\nformat = "jsonl"\n' if where == "config" else "", encoding="utf-8")
    asked = ["--format", "jsonl"] if where == "option" else []
    done = ctxrel("run", write_log(records(1)), "-m", "offline", "--engine", "ray", *asked)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "ctxrel: --engine ray writes a folder of Parquet files, each by a process of its own; "
        "leave out --format jsonl, or --engine ray"
    )
    assert not (tmp_path / "log.ctxrel").exists()
    assert results_format(Engine.RAY, None) is results_format(Engine.RAY, Format.PARQUET) is Format.PARQUET
    assert results_format(Engine.LOCAL, None) is Format.JSONL


@pytest.mark.parametrize(
    ("records", "size", "workers", "concurrency", "sizes"),
    [
        (100, 100_000, 2, 64, (64, 2)),
        (5_000, 5_000_000, 2, 8, (156, 2)),
        (100_000, 100_000_000, 2, 64, (512, 2)),
        (100_000, 100_000_000, 2, None, (512, 2)),
        (1_000_000, 1_000_000_000, 64, 4096, (512, 2)),
        (100_000, 10_000_000_000, 2, None, (64, 9)),
        (0, 0, 4, 2, (64, 2)),
    ],
    ids=["short", "middle", "long", "adaptive", "many workers", "long records", "nothing"],
)
def test_sizes(records: int, size: int, workers: int, concurrency: int | None, sizes: tuple[int, int]) -> None:
    """Batches are large where the log is long, so that the driver keeps up, and small where workers would wait."""
    assert sizes_for(records, size, workers, concurrency) == sizes


def test_what_gives_way_to_rows(tmp_path: Path) -> None:
    """Rows in another format, and those of a run before, go; what somebody else put into the folder stays."""
    for name in ("results.jsonl", "results.parquet.part", "results.csv", "results.md"):
        (tmp_path / name).touch()
    for name, rows in (("results", "old"), ("results.part", "new")):
        (tmp_path / name).mkdir()
        (tmp_path / name / rows).touch()
    publish(tmp_path, "results")
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} == {
        "results", "results/new", "results.csv", "results.md",
    }  # fmt: skip


def test_hash_of_parts(tmp_path: Path) -> None:
    """A folder of rows has a hash over all files of rows, whatever else is put there, and none where it is gone."""
    for number in range(2):
        (tmp_path / f"part-{number}").write_bytes(b"rows")
    whole = hash_of(tmp_path)
    (tmp_path / "notes.txt").write_bytes(b"mine")
    assert whole == hash_of(tmp_path) is not None
    (tmp_path / "part-1").unlink()
    assert hash_of(tmp_path) not in (whole, None)
    assert hash_of(tmp_path / "results") is None

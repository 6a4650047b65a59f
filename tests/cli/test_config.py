"""Options in a file."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Record, RunCommand, read_rows, read_summary
from typer.main import get_command

from ctxrel.cli.app import app
from ctxrel.cli.commands.config import long_name, options_of, read_config
from ctxrel.cli.commands.init import config_text

WriteLog = Callable[..., Path]
RUN = get_command(app).commands["run"]  # type: ignore[attr-defined]
RECORDS: list[Record] = [{"question": f"What is {n}?", "contexts": [f"{n} is."], "n": n} for n in range(9)]


@pytest.fixture
def log(write_log: WriteLog) -> Path:
    return write_log(RECORDS)


def test_file_in_the_working_folder(ctxrel: RunCommand, log: Path) -> None:
    """What ctxrel.toml sets holds, lists, numbers and switches alike; the summary names the file."""
    Path("ctxrel.toml").write_text(
        '[run]\nmodel = "offline"\noutput = "out"\nwhere = ["n>2", "n!=5"]\nlimit = 3\nwith-input = true\ngrace = 5\n'
        'evaluator = ["context_relevance", "context_relevance_graded"]\nprogress = "plain"\nstore = "replies.sqlite"\n'
    )
    done = ctxrel("run", log)
    assert done.returncode == 0
    assert "options: ctxrel.toml\n" in done.stderr
    assert [row["input"]["n"] for row in read_rows(Path("out"))] == [3, 3, 4, 4, 6, 6]
    assert Path("replies.sqlite").exists()
    configuration = read_summary(Path("out"))["configuration"]
    assert {key: configuration[key] for key in ("config", "model", "limit", "grace", "with_input")} == {
        "config": "ctxrel.toml", "model": "offline", "limit": 3, "grace": 5.0, "with_input": True,
    }  # fmt: skip


def test_command_line_wins(ctxrel: RunCommand, log: Path) -> None:
    """An option that is given replaces the file's, also one that may be repeated; --config replaces ctxrel.toml."""
    Path("ctxrel.toml").write_text('[run]\nmodel = "none-such"\n')
    Path("own.toml").write_text('[run]\nmodel = "offline"\nlimit = 1\nwhere = ["n=3"]\n')
    assert ctxrel("run", log, "--config", "own.toml", "--limit", "2", "--where", "n>6").returncode == 0
    assert [row["index"] for row in read_rows(Path("log.ctxrel"))] == [7, 8]
    assert read_summary(Path("log.ctxrel"))["configuration"]["config"] == "own.toml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[run]\nmodle = 'x'", "c.toml: unknown key 'modle' in [run]; did you mean 'model'?"),
        ("[run]\nbase_url = 'x'", "c.toml: unknown key 'base_url' in [run]; did you mean 'base-url'?"),
        ("[run]\nconfig = 'x'", "c.toml: unknown key 'config' in [run]; "),
        ("model = 'x'", "c.toml: unknown key 'model'; options stand in the table [run]"),
        ("run = 1", "c.toml: 'run' is no table; write [run] on a line"),
        ("[run]\nlimit = '3'", "c.toml: limit is '3'; write a whole number"),
        ("[run]\nlimit = true", "c.toml: limit is true; write a whole number"),
        ("[run]\nlimit = 0", "c.toml: limit is 0; write a whole number from 1"),
        ("[run]\nconcurrency = 5000", "c.toml: concurrency is 5000; write a whole number from 1 to 1000"),
        ("[run]\ngrace = nan", "c.toml: grace is nan; write a number"),
        ("[run]\nexplain = 'yes'", "c.toml: explain is 'yes'; write true or false"),
        ("[run]\nmodel = 4", "c.toml: model is 4; write a text in quotes"),
        ("[run]\nwhere = 'n=1'", "c.toml: where is 'n=1'; it may be given several times, write where = [\"…\"]"),
        ("[run]\nwhere = [1]", "c.toml: where is 1; write a text in quotes"),
        ("[run]\nprogress = 'bars'", "c.toml: progress is 'bars'; did you mean 'bar'?"),
        ("[run", "the config file 'c.toml' is no TOML: "),
    ],
    ids=lambda text: re.sub(r"\W+", " ", text),
)
def test_wrong_file(ctxrel: RunCommand, log: Path, text: str, said: str) -> None:
    """What is wrong in a file is told in a sentence with file, key and what would be right."""
    Path("c.toml").write_text(text)
    done = ctxrel("run", log, "--config", "c.toml")
    assert done.returncode == 2
    assert done.stderr.startswith(f"ctxrel: {said}")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def logs() -> Path:
    """A folder with two logs and a config file beside them."""
    Path("logs").mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        Path("logs", name).write_text('{"question": "What is it?", "contexts": ["It is."]}\n')
    Path("logs/ctxrel.toml").write_text('[run]\nmodel = "offline"\noutput = "out"\n')
    return Path("logs")


@pytest.mark.parametrize("inputs", [["logs/a.jsonl"], ["logs/a.jsonl", "logs/b.jsonl"], ["logs/*.jsonl"], ["logs"]])
def test_file_beside_the_log(ctxrel: RunCommand, logs: Path, inputs: list[str]) -> None:
    """Where the current folder has no file, that of the logs' folder is read, wherever the logs stand on the line."""
    done = ctxrel("run", "--limit", "1", *inputs)
    assert done.returncode == 0, done.stderr
    assert f"options: {logs}/ctxrel.toml\n" in done.stderr
    assert read_summary(Path("out"))["configuration"]["config"] == "logs/ctxrel.toml"
    assert len(read_rows(Path("out"))) == 1


def test_current_folder_before_the_logs(ctxrel: RunCommand, logs: Path) -> None:
    """--config comes before the current folder's file, and that before the one beside the log."""
    for name in ("ctxrel.toml", "own.toml"):
        Path(name).write_text(f'[run]\nmodel = "offline"\noutput = "{name}.out"\n')
    for options, said in (((), "ctxrel.toml"), (("--config", "own.toml"), "own.toml")):
        done = ctxrel("run", *options, logs / "a.jsonl")
        assert done.stderr.startswith(f"options: {said}\n")
        assert Path(f"{said}.out").exists()


def test_logs_of_several_folders(ctxrel: RunCommand, logs: Path, log: Path) -> None:
    """Logs of several folders have no file beside them."""
    done = ctxrel("run", logs / "a.jsonl", log, "-m", "offline", "-o", "mine")
    assert done.returncode == 0
    assert "options:" not in done.stderr


@pytest.mark.parametrize("line", ['base-url = "http://localhost:1"', 'api-key-env = "MINE"', "insecure = true"])
def test_file_beside_the_log_names_no_endpoint(ctxrel: RunCommand, logs: Path, line: str) -> None:
    """A file that comes with a log does not say where records and key go, unless it is named."""
    Path("logs/ctxrel.toml").write_text(f'[run]\nmodel = "offline"\n{line}\n')
    done = ctxrel("run", logs / "a.jsonl")
    name = line.partition(" ")[0]
    assert (done.returncode, done.stderr) == (
        2, f"ctxrel: logs/ctxrel.toml: {name} is not read from beside a log, which may be another's; "
        "to trust the file give --config logs/ctxrel.toml\n",
    )  # fmt: skip
    assert ctxrel("run", logs / "a.jsonl", "--config", "logs/ctxrel.toml").returncode == 0


def test_file_beside_the_log_names_no_cluster(ctxrel: RunCommand, logs: Path) -> None:
    """Records are handed to the machines of a Ray cluster as well, and a cluster hands back what is unpickled."""
    Path("logs/ctxrel.toml").write_text('[run]\nmodel = "offline"\nengine = "ray"\nray-address = "h:1"\n')
    done = ctxrel("run", logs / "a.jsonl", "--dry-run")
    assert done.returncode == 2
    assert "ray-address is not read from beside a log" in done.stderr


def test_no_file(ctxrel: RunCommand, log: Path) -> None:
    """A file that was named has to be there."""
    done = ctxrel("run", log, "--config", "c.toml")
    assert (done.returncode, done.stderr) == (
        2, "ctxrel: cannot read the config file 'c.toml': No such file or directory\n",
    )  # fmt: skip
    assert ctxrel("run", log, "--config", "").returncode == 2


def test_init(ctxrel: RunCommand, log: Path) -> None:
    """The file that init writes sets nothing, and is not replaced without --force."""
    assert ctxrel("init").returncode == 0
    assert tomllib.loads(Path("ctxrel.toml").read_text()) == {"run": {}}
    assert ctxrel("run", log, "-m", "offline").returncode == 0
    again = ctxrel("init")
    assert (again.returncode, again.stderr) == (2, "ctxrel: 'ctxrel.toml' is there already; replace it with --force\n")
    assert ctxrel("init", "--force").returncode == 0


def test_init_names_every_option_with_its_default() -> None:
    """Each option stands in the file with its meaning, and can be uncommented; defaults are the command's."""
    text = config_text(RUN.params)
    names = re.findall(r"^# ([a-z-]+) = ", text, re.MULTILINE)
    assert names == [long_name(parameter) for parameter in options_of(RUN.params)]
    assert max(map(len, text.splitlines())) <= 120
    uncommented = re.sub(r"^# (?=[a-z-]+ = )", "", text, flags=re.MULTILINE)
    Path("c.toml").write_text(re.sub(r" = (N|SECONDS|USD)$", " = 100", uncommented, flags=re.MULTILINE))
    found = read_config(Path("c.toml"), RUN.params)
    for parameter in options_of(RUN.params):
        assert parameter.help.split()[0] in text
        if parameter.default is not None:
            assert found[parameter.name] == parameter.default

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


def test_no_file(ctxrel: RunCommand, log: Path) -> None:
    """A file that was named has to be there."""
    done = ctxrel("run", log, "--config", "c.toml")
    assert (done.returncode, done.stderr) == (
        2, "ctxrel: cannot read the config file 'c.toml': No such file or directory\n",
    )  # fmt: skip


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

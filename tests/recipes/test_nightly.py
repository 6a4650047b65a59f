"""docs/recipes/nightly.md."""

import json
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from recipes.conftest import Shell
from recipes.page import Page
from servers.loopback import LoopbackServer, cite, error

from ctxrel.cli.reports.metrics import HELP

PAGE = Page("nightly.md")
DAY = "2026-03-01"
MAIL = 'printf "%s\\n" "$@" > "{folder}/mail"; cat >> "{folder}/mail"'


@pytest.fixture
def folder(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script in its folder, with a log, a key, a folder for metrics, and a mail program that keeps what it gets."""
    PAGE.write("nightly.sh")
    Path("nightly.sh").chmod(0o755)
    Path("key.env").write_text("OPENAI_API_KEY=sk-of-the-file\n")
    for name in ("logs", "nights", "metrics"):
        Path(name).mkdir()
    records = [{"question": f"Where is otter {n}?", "contexts": [f"Otter {n} sleeps."]} for n in range(10)]
    Path(f"logs/{DAY}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    shell.add("mail", MAIL.format(folder=tmp_path))
    monkeypatch.setenv("METRICS", str(tmp_path / "metrics"))
    return tmp_path


def night(day: str | None = DAY) -> int:
    """The exit code of a night, as cron starts one: from another folder."""
    command = ["sh", "-c", f"cd / && {Path.cwd()}/nightly.sh {day or ''}"]
    return subprocess.run(command, timeout=120, check=False).returncode


def metrics() -> dict[str, float]:
    """The sums of all metrics in the file."""
    families = text_string_to_metric_families(Path("metrics/ctxrel.prom").read_text())
    return {family.name: sum(sample.value for sample in family.samples) for family in families}


@pytest.mark.usefixtures("folder")
def test_good_night(endpoint: LoopbackServer) -> None:
    """A night that is well leaves rows and metrics that others may read, and no mail; the key is the file's."""
    endpoint.script = lambda _: cite(1)
    assert night() == 0
    assert not Path("mail").exists()
    assert Path(f"nights/{DAY}/results.jsonl").stat().st_size
    assert metrics()["ctxrel_score"] == 1
    assert stat.S_IMODE(Path("metrics/ctxrel.prom").stat().st_mode) & 0o044
    assert [path.name for path in Path("metrics").iterdir()] == ["ctxrel.prom"]
    assert {seen.headers["Authorization"] for seen in endpoint.seen} == {"Bearer sk-of-the-file"}


@pytest.mark.usefixtures("folder")
def test_bad_night_and_one_that_is_made_up_for(endpoint: LoopbackServer) -> None:
    """A refused key is a mail with exit 1, and metrics that say so; mended, the same night asks for what is missing."""
    endpoint.script = lambda _: cite(1) if len(endpoint.seen) < 4 else error(401, "Incorrect API key provided")
    assert night() == 1
    mail = Path("mail").read_text()
    assert mail.startswith(f"-s\nctxrel {DAY}: the run failed (exit 1)\nroot\n")
    assert "refused the API key" in mail
    assert "sk-of-the-file" not in mail
    assert "otter" not in mail
    assert 'ctxrel_run_status{run="2026-03-01",status="failed"} 1.0' in Path("metrics/ctxrel.prom").read_text()
    asked = len(endpoint.seen)
    endpoint.script = lambda _: cite(1)
    assert night() == 0
    assert len(endpoint.seen) - asked < 10
    assert metrics()["ctxrel_score"] == 1


@pytest.mark.usefixtures("folder")
def test_yesterday_and_its_gate(endpoint: LoopbackServer) -> None:
    """Without a day it is yesterday; a score below the gate is a mail with exit 3 beside complete results."""
    endpoint.script = lambda _: cite()
    for day in ("yesterday", "today"):  # it may be midnight
        name = subprocess.run(["date", "-d", day, "+%F"], capture_output=True, text=True, check=True).stdout.strip()
        shutil.copyfile(f"logs/{DAY}.jsonl", f"logs/{name}.jsonl")
    assert night(None) == 3
    assert "done, and a gate is not met (exit 3)" in Path("mail").read_text()
    assert metrics()["ctxrel_gate_met"] == 1  # the share of errors is; the score is not


@pytest.mark.usefixtures("folder")
def test_nothing_to_read() -> None:
    """A day without a log is a mail with exit 2."""
    assert night("2026-11-28") == 2
    assert "the command or the log is wrong, nothing was sent (exit 2)" in Path("mail").read_text()


@pytest.mark.usefixtures("folder")
def test_not_finished(endpoint: LoopbackServer) -> None:
    """A cap that is reached is a mail with exit 75."""
    script = Path("nightly.sh").read_text()
    Path("nightly.sh").write_text(script.replace("--max-tokens-total 20000000", "--max-tokens-total 1"))
    assert night() == 75
    assert "not finished (exit 75)" in Path("mail").read_text()
    assert len(endpoint.seen) == 1


def test_crontab() -> None:
    """Each line is five fields in their ranges and a command without a bare %."""
    lines = [line for line in PAGE.block("cron", "nightly.sh").splitlines() if not line.startswith("#")]
    assert len(lines) == 1
    for line in lines:
        *times, command = line.split(maxsplit=5)
        for time, (least, most) in zip(times, [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)], strict=True):
            assert time == "*" or least <= int(time) <= most
        assert command == "/srv/ctxrel/nightly.sh"
        assert not re.search(r"(?<!\\)%", command)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not on this machine")
def test_units() -> None:
    """Nothing is wrong with the units for systemd, but that the script is not in /srv on this machine."""
    PAGE.write("ctxrel.service", "ctxrel.timer")
    service = Path("ctxrel.service").read_text().replace("/srv/ctxrel/nightly.sh", "/bin/true")
    Path("ctxrel.service").write_text(service)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "./ctxrel.timer", "./ctxrel.service"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    about_ours = [line for line in done.stderr.splitlines() if "ctxrel" in line]
    assert (done.returncode, about_ours) == (0, [])
    calendar = re.search(r"OnCalendar=(.*)", Path("ctxrel.timer").read_text())
    assert calendar
    subprocess.run(["systemd-analyze", "calendar", calendar[1]], capture_output=True, timeout=60, check=True)


def test_alerts() -> None:
    """The rules are YAML, and every metric in them is one that is written."""
    (group,) = yaml.safe_load(PAGE.file("ctxrel.rules.yml"))["groups"]
    for rule in group["rules"]:
        assert rule.keys() == {"alert", "expr"}
        assert set(re.findall(r"ctxrel_\w+", rule["expr"])) <= set(HELP)

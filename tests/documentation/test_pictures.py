"""The picture of a terminal shows what the command prints now."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from documentation.shell import ROOT
from documentation.terminal import COMMAND, draw, run_in_terminal, text_of

_TIMES = re.compile(r"\d+(?:\.\d+)?(?=/s| s\b)")


def test_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same text, but for how long it took: else run `python tests/documentation/pictures.py`."""
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    command, *rest = COMMAND.split()
    now = text_of(draw(run_in_terminal([str(Path(sys.executable).with_name(command)), *rest])))
    pictured = text_of((ROOT / "docs" / "pictures" / "run.svg").read_text(encoding="utf-8"))
    assert _TIMES.sub("0", pictured) == _TIMES.sub("0", now)
    assert pictured.startswith(f"$ {COMMAND}\n")
    assert "context_relevance" in pictured

"""docs/recipes/analysis.md."""

import contextlib
import io
import re

import duckdb
import pytest
from recipes.conftest import Shell
from recipes.page import Page

PAGE = Page("analysis.md")


def cells(text: str) -> list[list[str]]:
    """A table's lines, cell by cell."""
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines()]


@pytest.mark.usefixtures("samples")
def test_answers(shell: Shell) -> None:
    """Each query gives the rows, and each piece of Python prints the line, that stand below it."""
    (runs,) = PAGE.blocks("bash")
    shell.run(runs)
    told = iter(PAGE.blocks("text"))
    for query in PAGE.blocks("sql"):
        found = duckdb.execute(query)
        columns = [column[0] for column in found.description or ()]
        assert [columns, *([str(cell) for cell in row] for row in found.fetchall())] == cells(next(told)), query
    names: dict[str, object] = {}
    for block in PAGE.blocks("python"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block, names)  # noqa: S102  # our own page
        assert printed.getvalue() == next(told)
    assert list(told) == []

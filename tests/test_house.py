"""The house: which room imports which, what the wheel holds, what a start costs."""

import ast
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from graphlib import TopologicalSorter
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ["cli", "evaluators", "prompts"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# From a room to those it may import, itself aside.
ARROWS = {
    "cli": {"cli.commands", "cli.console", "cli.runs", "evaluators"},
    "cli.commands": {
        "cli.console",
        "cli.contracts",
        "cli.health",
        "cli.runs",
        "cli.records",
        "cli.reports",
        "evaluators",
    },
    "cli.console": {"cli.runs", "evaluators"},
    "cli.contracts": {"cli.runs", "evaluators"},
    "cli.reports": {"cli.runs", "cli.records", "cli.statistics", "evaluators"},
    "cli.runs": {"cli.records", "cli.statistics", "evaluators"},
    "cli.statistics": {"evaluators"},
    "cli.health": {"cli.runs", "evaluators"},
    "cli.records": {"evaluators"},
    "cli.testing": {"cli.commands", "cli.runs", "evaluators"},
    "evaluators": set[str](),
}


def modules() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def room_of(dotted: str) -> str:
    """The longest room that a module is in."""
    return max((room for room in ARROWS if f"{dotted}.".startswith(f"{room}.")), key=len, default=dotted)


def imports(path: Path) -> set[str]:
    """Modules that a file imports, ours as `cli.runs.store`."""
    package = list(path.relative_to(ROOT).parent.parts)
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            found |= {stem} if node.module else {f"{stem}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    """From commands to runs and records, to evaluators, to prompts (data); only the console imports rich."""
    here = room_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for name in imports(path):
        top = name.split(".")[0]
        if top in ROOMS:
            there = room_of(name)
            assert there == here or there in ARROWS[here], f"{here} imports {there}"
        assert top != "rich" or path.name == "console.py"
        assert top != "ctxrel"
        if here == "evaluators":
            assert top not in ("typer", "rich", "pyarrow")


def test_no_import_cycle() -> None:
    """No module needs itself through others, not even inside a function."""
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in modules()
    }
    needs = {name: {found for found in imports(path) if found in names} for name, path in names.items()}
    TopologicalSorter(needs).prepare()


def test_packages_are_complete() -> None:
    """Every folder with code is a package that is shipped."""
    folders = {f"ctxrel.{'.'.join(path.parent.relative_to(ROOT).parts)}" for path in modules()}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == folders


def test_dependencies_have_bounds_and_reasons() -> None:
    """Every dependency is bounded, and a comment says what it is for."""
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    for group in (PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values()):
        for dependency in group:
            assert ">=" in dependency, dependency
            found = [line for line in lines if f'"{dependency}"' in line]
            assert found, dependency
            assert all("#" in line for line in found), dependency


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, capture_output=True)
    return folder


def test_wheel(built: Path) -> None:
    """The wheel owns one name, holds every module, every prompt, schema of logs and price, and no test."""
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert zipfile.ZipFile(wheel).read(next(n for n in names if n.endswith("top_level.txt"))) == b"ctxrel\n"
    shipped = {name for name in names if not name.startswith("ctxrel-")}
    ours = {f"ctxrel/{path.relative_to(ROOT)}" for path in modules()}
    data = {f"ctxrel/{path.relative_to(ROOT)}" for room in ROOMS for path in (ROOT / room).rglob("*.yaml")}
    data |= {f"ctxrel/cli/reports/html/{name}" for name in ("report.html", "report.css", "record.js", "list.js")}
    assert shipped == ours | data | {f"ctxrel/{room}/py.typed" for room in ROOMS}


def test_sdist(built: Path) -> None:
    """The sdist holds what the tests need."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "LICENSE",
        "README.md",
        "README.ko.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "sample_data/support_en.jsonl",
        "tests/conftest.py",
    } <= names


def test_prompts_are_found_as_installed() -> None:
    """The installed package has the prompts, also when installed for editing."""
    assert resources.files("ctxrel.prompts").joinpath("context_relevance.yaml").is_file()


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["run", "x", "--modle", "y"]], ids=" ".join)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    """Help and a typo answer without the packages that take long to import."""
    heavy = {"openai", "pyarrow", "aiohttp", "httpx2", "rich.progress", "xllamacpp"}
    code = (
        "import sys; from ctxrel.cli.app import main\n"
        f"sys.argv = ['ctxrel', *{arguments}]\n"
        "try: main()\n"
        f"finally: print('HEAVY', sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "HEAVY []" in done.stdout


def test_typo_is_met_with_the_right_word() -> None:
    """A mistyped option is answered with the likely one and exit 2."""
    done = subprocess.run(
        [sys.executable, "-m", "ctxrel.cli", "run", "x.jsonl", "--modle", "y"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "--model" in done.stderr


def test_changelog_names_the_version() -> None:
    """There is always an entry for what comes next."""
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()

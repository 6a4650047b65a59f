"""Who is measured: each with its environment, its command and the form of its replies."""

import json
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.dialects import Dialect, citations, label, rating, statements, verdicts

HERE = Path(__file__).parent
_QUIET = {
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "RAGAS_DO_NOT_TRACK": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
}
Outcome = tuple[Sequence[float | None], int, float | None]


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """A peer, driven by a script in its own environment."""

    packages: Sequence[str]
    driver: str
    dialect: Dialect
    way: str
    """How it is run, and which of its options are set."""
    options: Sequence[str] = ()
    quotes: bool = True
    """Whether its judge writes statements down."""
    good_exits: Sequence[int] = (0,)

    @property
    def main_package(self) -> str:
        """Whose version is told, and whose name the environment has."""
        return self.packages[0]

    def install(self, environments: Path) -> Path:
        """Its environment, made if it is missing."""
        place = environments / self.main_package
        if not place.exists():
            venv.create(place, with_pip=True)
            subprocess.run([place / "bin" / "pip", "install", "-q", *self.packages], check=True)
        return place

    def version(self, environment: Path) -> str:
        """Name and version of what is installed."""
        code = f"from importlib.metadata import version; print(version('{self.main_package}'))"
        told = subprocess.run([environment / "bin" / "python", "-c", code], check=True, capture_output=True, text=True)
        return f"{self.main_package} {told.stdout.strip()}"

    def command(self, environment: Path, folder: Path) -> list[str]:
        """What judges the folder's log."""
        driver = str(HERE / self.driver)
        return [
            str(environment / "bin" / "python"), driver, str(folder / "log.jsonl"), str(folder / "out.json"),
            *self.options,
        ]  # fmt: skip

    def variables(self, url: str) -> Mapping[str, str]:
        """Where it finds the endpoint, and that it sends nothing home."""
        return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", **_QUIET}

    def outcome(self, folder: Path) -> Outcome:
        """Scores, failures told of, and its own mean."""
        found = json.loads((folder / "out.json").read_text(encoding="utf-8"))
        return found["scores"], found["told"], found["mean"]


class Ours(Contestant):
    """ctxrel, from this interpreter."""

    def install(self, environments: Path) -> Path:
        """The environment that runs this."""
        del environments
        return Path(sys.prefix)

    def command(self, environment: Path, folder: Path) -> list[str]:
        """The command, with its defaults."""
        del environment
        given = ["run", str(folder / "log.jsonl"), "-m", "judge-1", "-o", str(folder / "out"), "--progress", "none"]
        return [sys.executable, "-m", "ctxrel.cli", *given, *self.options]

    def outcome(self, folder: Path) -> Outcome:
        """As the summary has it."""
        rows = (folder / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
        summary = json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))
        (told,) = summary["evaluators"].values()
        return [json.loads(row)["score"] for row in rows], sum(told["errors"].values()), told["score"]


CONTESTANTS: dict[str, Contestant] = {
    "ctxrel": Ours(packages=["ctxrel"], driver="", dialect=citations, way="ctxrel run, defaults", good_exits=(0, 3)),
    "ctxrel verbatim": Ours(
        packages=["ctxrel"],
        driver="",
        dialect=statements,
        way="ctxrel run -e context_relevance_verbatim",
        options=["-e", "context_relevance_verbatim"],
        good_exits=(0, 3),
    ),
    "Haystack": Contestant(
        packages=["haystack-ai"],
        driver="with_haystack.py",
        dialect=statements,
        way="ContextRelevanceEvaluator.run, raise_on_failure=True (the default)",
    ),
    "Haystack, lenient": Contestant(
        packages=["haystack-ai"],
        driver="with_haystack.py",
        dialect=statements,
        way="ContextRelevanceEvaluator.run, raise_on_failure=False",
        options=["lenient"],
    ),
    "Ragas": Contestant(
        packages=["ragas", "langchain-community<0.4"],
        driver="with_ragas.py",
        dialect=rating,
        way="@experiment with ContextRelevance, defaults",
        quotes=False,
    ),
    "Ragas, cache": Contestant(
        packages=["ragas", "langchain-community<0.4"],
        driver="with_ragas.py",
        dialect=rating,
        way="@experiment with ContextRelevance, llm_factory(cache=DiskCacheBackend())",
        options=["cache"],
        quotes=False,
    ),
    "Ragas, evaluate": Contestant(
        packages=["ragas", "langchain-community<0.4"],
        driver="with_ragas_evaluate.py",
        dialect=rating,
        way="evaluate (deprecated) with ContextRelevance and RunConfig()",
        quotes=False,
    ),
    "Phoenix": Contestant(
        packages=["arize-phoenix-evals", "openai"],
        driver="with_phoenix.py",
        dialect=label,
        way="async_evaluate_dataframe with RetrievalRelevanceEvaluator, defaults",
        quotes=False,
    ),
    "Phoenix, lenient": Contestant(
        packages=["arize-phoenix-evals", "openai"],
        driver="with_phoenix.py",
        dialect=label,
        way="async_evaluate_dataframe with RetrievalRelevanceEvaluator, exit_on_error=False",
        options=["lenient"],
        quotes=False,
    ),
    "DeepEval": Contestant(
        packages=["deepeval"],
        driver="with_deepeval.py",
        dialect=verdicts,
        way="evaluate with ContextualRelevancyMetric, defaults",
    ),
    "DeepEval, lenient": Contestant(
        packages=["deepeval"],
        driver="with_deepeval.py",
        dialect=verdicts,
        way="evaluate with ContextualRelevancyMetric, ignore_errors=True, use_cache=True",
        options=["lenient", "cache"],
    ),
}

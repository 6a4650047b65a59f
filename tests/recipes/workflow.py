"""The `run:` steps of a GitHub workflow, carried out in order as a runner does; what is used must be done by the test."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from recipes.conftest import Shell

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_HASH = re.compile(r"hashFiles\('([^']+)'\)\s*!=\s*''")


class Workflow:
    """One job of a workflow."""

    def __init__(self, text: str, job: str) -> None:
        document = yaml.safe_load(text)
        self.events = document[True]  # YAML 1.1 reads `on` so
        self.permissions = document["permissions"]
        self.job: dict[str, Any] = document["jobs"][job]
        self.steps: list[dict[str, Any]] = self.job["steps"]

    @property
    def actions(self) -> list[str]:
        """What is used."""
        return [step["uses"] for step in self.steps if "uses" in step]

    def run(self, shell: Shell, context: Mapping[str, str], codes: Mapping[str, int]) -> list[str]:
        """The names of the steps that were run, a failed one with its exit code, which `codes` has to expect."""
        done = []
        failed = False
        for step in self.steps:
            if not self._wanted(str(step.get("if", "")), context, failed=failed) or "run" not in step:
                continue
            code = codes.get(step["name"], 0)
            shell.run(step["run"], code=code, environment=self._environment(step, context))
            failed = failed or code != 0
            done.append(f"{step['name']}: {code}" if code else step["name"])
        return done

    def _environment(self, step: Mapping[str, Any], context: Mapping[str, str]) -> dict[str, str]:
        values = {**self.job.get("env", {}), **step.get("env", {})}
        return {name: _EXPRESSION.sub(lambda found: context[found[1]], str(value)) for name, value in values.items()}

    def _wanted(self, condition: str, context: Mapping[str, str], *, failed: bool) -> bool:
        """Whether a step is run: a failed job runs no more, but for steps that ask to."""
        inner = found[1] if (found := _EXPRESSION.fullmatch(condition)) else condition
        terms = [term.strip() for term in inner.split("&&")] if inner else []
        return (not failed or "!cancelled()" in terms) and all(self._true(term, context) for term in terms)

    def _true(self, term: str, context: Mapping[str, str]) -> bool:
        if term == "!cancelled()":
            return True
        if hashed := _HASH.fullmatch(term):
            return Path(hashed[1]).exists()
        name, value = term.split(" == ")
        return context[name] == value.strip("'")

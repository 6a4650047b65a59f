"""What ctxrel is compared with, each as a command over the first records of a log."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from servers.fast import MODEL

_HAYSTACK = """
import json, sys
from itertools import islice
from haystack.components.evaluators import ContextRelevanceEvaluator
from haystack.components.generators.chat import OpenAIChatGenerator
log, model, limit = sys.argv[1:]
records = [json.loads(line) for line in islice(open(log, encoding="utf-8"), int(limit))]
generator = OpenAIChatGenerator(model=model, generation_kwargs={"response_format": {"type": "json_object"}})
evaluator = ContextRelevanceEvaluator(progress_bar=False, chat_generator=generator)
results = evaluator.run(questions=[r["question"] for r in records], contexts=[r["contexts"] for r in records])
assert all(result["status"] == "evaluated" for result in results["results"])
"""


def haystack(python: str, log: Path, *, limit: int) -> list[str]:
    """Haystack's evaluator, in the environment of the interpreter."""
    return [python, "-c", _HAYSTACK, str(log), MODEL, str(limit)]


def haystack_environment(url: str) -> Mapping[str, str]:
    """Where it finds the endpoint."""
    return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "HAYSTACK_TELEMETRY_ENABLED": "False"}


def haystack_version(python: str) -> str:
    """Its name and version."""
    code = "from importlib.metadata import version; print('haystack-ai', version('haystack-ai'))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

"""Tokens per record: `python tests/benchmarks/tokens.py LABELLED.jsonl [--haystack PYTHON] [--limit N]`.

The same records go through both forms of context relevance, and through Haystack's ContextRelevanceEvaluator where
the PYTHON of an environment with haystack-ai is named. A loopback endpoint answers all of them with the same sentences,
those that the lexical baseline holds for relevant. There is no tokenizer: a token is taken for four bytes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, completion

from ctxrel.evaluators.case import number_statements
from ctxrel.evaluators.judges.lexical import relevant_sentences

BYTES = 4
HAYSTACK = """
import json, sys
from importlib.metadata import version
from haystack.components.evaluators import ContextRelevanceEvaluator
from haystack.components.generators.chat import OpenAIChatGenerator
records = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
generator = OpenAIChatGenerator(model=sys.argv[2], generation_kwargs={"response_format": {"type": "json_object"}})
evaluator = ContextRelevanceEvaluator(progress_bar=False, raise_on_failure=False, chat_generator=generator)
evaluator.run(questions=[r["question"] for r in records], contexts=[r["contexts"] for r in records])
print(version("haystack-ai"))
"""


@dataclass
class Scribe:
    """Answers with the sentences it holds for relevant, and counts bytes of content both ways."""

    records: list[dict[str, Any]]
    system: int = 0
    user: int = 0
    received: int = 0
    requests: int = 0
    questions: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def __call__(self, seen: Seen) -> Answer:
        """The reply in the form that the request asks for."""
        messages = seen.body["messages"]
        relevant = self._relevant(messages[-1]["content"])
        cites = "numbers of sentences" in messages[0]["content"]
        reply = json.dumps(
            {"relevant_statements": [number if cites else text for number, text in relevant]}, ensure_ascii=False
        )
        self.requests += 1
        self.system += sum(len(message["content"].encode()) for message in messages[:-1])
        self.user += len(messages[-1]["content"].encode())
        self.received += len(reply.encode())
        return completion(reply)

    def _relevant(self, content: str) -> list[tuple[int, str]]:
        for record in self.records:
            question = record["question"]
            if question in content or json.dumps(question, ensure_ascii=False)[1:-1] in content:
                contexts = number_statements(record["contexts"])
                chosen = relevant_sentences(question, [[s.text for s in context] for context in contexts])
                return [(s.number, s.text) for context in contexts for s in context if s.number in chosen]
        raise ValueError(content)

    def line(self, name: str) -> str:
        """A line of the table: tokens per record."""
        parts = [part / BYTES / self.requests for part in (self.system, self.user, self.received)]
        return f"{name:36} {self.requests:8} {parts[0]:14.0f} {parts[1]:8.0f} {sum(parts[:2]):8.0f} {parts[2]:9.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--haystack", metavar="PYTHON")
    parser.add_argument("--limit", type=int, default=50)
    arguments = parser.parse_args()
    lines = arguments.log.read_text(encoding="utf-8").splitlines()[: arguments.limit]
    records = [json.loads(line) for line in lines]
    print(f"ctxrel {version('ctxrel')}, {len(records)} records of {arguments.log.name}, {BYTES} bytes a token")
    print(f"{'':36} {'requests':>8} {'sent: system':>14} {'record':>8} {'in all':>8} {'received':>9}")
    with tempfile.TemporaryDirectory() as folder, LoopbackServer() as server:
        log = Path(folder) / "log.jsonl"
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")
        for name in ("context_relevance", "context_relevance_verbatim"):
            server.script = scribe = Scribe(records)
            command = [sys.executable, "-m", "ctxrel.cli", "run", str(log), "-e", name, "-m", MODEL]
            command += ["--base-url", server.url, "-o", str(Path(folder) / name), "--progress", "none"]
            subprocess.run(command, check=True)
            print(scribe.line(name))
        if arguments.haystack:
            server.script = scribe = Scribe(records)
            environment = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
            environment["HAYSTACK_TELEMETRY_ENABLED"] = "False"
            command = [arguments.haystack, "-c", HAYSTACK, str(log), MODEL]
            done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
            print(scribe.line(f"haystack-ai {done.stdout.strip()}"))


if __name__ == "__main__":
    main()

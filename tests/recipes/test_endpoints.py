"""docs/recipes/endpoints.md, with a server that has each endpoint's ways; llama.cpp itself is in tests/protocol."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web
from conftest import read_rows, read_summary
from recipes.conftest import Shell, serving
from recipes.page import Page
from servers.loopback import Answer, LoopbackServer, Seen, cite, completion, error

PAGE = Page("endpoints.md")
AZURE = "NAME.openai.azure.com/openai/v1/"


@pytest.fixture(autouse=True)
def log(write_log: Callable[..., Path]) -> None:
    """The log of all commands: three short records and a long one."""
    texts = ["Otters sleep on the water.", "They hold hands.", "They eat urchins.", "An otter swims. " * 3000]
    write_log([{"question": f"Q{n}?", "contexts": [text]} for n, text in enumerate(texts)])


def run(shell: Shell, server: LoopbackServer, holding: str, *, code: int = 0) -> str:
    """What a command says on standard error, its server being the one given."""
    command = re.sub(r"http://localhost:\d+/v1", server.url, PAGE.block("bash", holding))
    return shell.run(command.replace("…", "key-1"), code=code).stderr


def first_sentence(seen: Seen) -> Answer:
    """The smallest number there is, in a schema that has to be strict."""
    assert seen.body["response_format"]["type"] == "json_schema"
    return cite(min(int(number) for context in seen.record["contexts"] for number in context))


def test_openai(shell: Shell, endpoint: LoopbackServer) -> None:
    """Reasoning models take no temperature; the key is the one that was exported."""
    endpoint.script = first_sentence
    shell.run(PAGE.block("bash", "export OPENAI_API_KEY").replace("sk-…", "sk-1"))
    assert {seen.headers["Authorization"] for seen in endpoint.seen} == {"Bearer sk-1"}
    assert all(seen.body["reasoning_effort"] == "low" and "temperature" not in seen.body for seen in endpoint.seen)


class AzureServer(LoopbackServer):
    """Azure's v1 path; deployments are no models, and are in no list."""

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_post("/openai/v1/chat/completions", self._complete)
        app.router.add_get("/openai/v1/models", self._list_models)
        app.router.add_get("/openai/v1/models/{model:.+}", self._show_model)


def azure(seen: Seen) -> Answer:
    """A deployment of a model that reasons, behind a filter."""
    if "temperature" in seen.body:
        return error(
            400, "'temperature' is not supported with this model", param="temperature", code="unsupported_value"
        )
    if "Q1?" in seen.record["question"]:
        return error(400, "The response was filtered", param="prompt", code="content_filter", innererror={"code": "x"})
    return first_sentence(seen)


@pytest.mark.parametrize("holding", ["export AZURE_KEY", "export OPENAI_CUSTOM_HEADERS"])
def test_azure(shell: Shell, monkeypatch: pytest.MonkeyPatch, holding: str) -> None:
    """A deployment that no list has is asked; a temperature is left out after one refusal; the filter is a row.

    What goes to Azure is led here by a proxy, in plain text.
    """
    monkeypatch.setenv("AZURE_KEY", "key-1")
    with AzureServer(azure, models=serving("gpt-5.1", "gpt-5.1-mini")) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
        command = PAGE.block("bash", holding).replace("…", "key-1")
        shell.run(command.replace(f"https://{AZURE}", f"http://{AZURE} --insecure --max-errors 50%"))
    assert {seen.path for seen in server.seen} == {"/openai/v1/chat/completions"}
    assert {seen.headers["Host"] for seen in server.seen} == {"NAME.openai.azure.com".lower()}
    assert {seen.headers["Authorization"] for seen in server.seen} == {"Bearer key-1"}
    assert {seen.headers.get("api-key") for seen in server.seen} == {"key-1" if "CUSTOM" in holding else None}
    assert {seen.body["model"] for seen in server.seen} == {"my-deployment"}
    assert sum("temperature" in seen.body for seen in server.seen) == 1
    rows = read_rows(Path("log.ctxrel"))
    assert [row["error"] and row["error"]["kind"] for row in rows] == [None, "content_filter", None, None]
    assert read_summary(Path("log.ctxrel"))["cost"] is None


def test_ollama(shell: Shell) -> None:
    """No key; the limit goes by the name that Ollama reads; what is too long for its context is divided before."""
    with LoopbackServer(first_sentence, models=serving("llama3.1")) as server:
        run(shell, server, "11434")
    assert all(seen.body["max_tokens"] == 1024 and "max_completion_tokens" not in seen.body for seen in server.seen)
    assert all(len(json.dumps(seen.body["messages"])) < 3 * 12000 for seen in server.seen)
    assert [row.get("requests", 1) > 1 for row in read_rows(Path("log.ctxrel"))] == [False, False, False, True]


def vllm(seen: Seen) -> Answer:
    """A model that says when a prompt is too long for it, in vLLM's words, and thinks aloud all the same."""
    if len(json.dumps(seen.record)) > 30_000:
        words = "This model's maximum context length is 16384 tokens. However, you requested 20480 tokens."
        return error(400, words, type="BadRequestError", code=400)
    first = min(int(number) for context in seen.record["contexts"] for number in context)
    return completion(f'<think>\n\n</think>\n\n{{"relevant_statements": [{first}]}}')


def test_vllm(shell: Shell) -> None:
    """Thinking is switched off, and taken off; a record beyond the model's length is divided by itself."""
    with LoopbackServer(vllm, models=serving("Qwen/Qwen3-8B")) as server:
        run(shell, server, "localhost:8000")
        assert {str(seen.body["chat_template_kwargs"]) for seen in server.seen} == {"{'enable_thinking': False}"}
        rows = read_rows(Path("log.ctxrel"))
        assert [(row["score"], row.get("requests", 1) > 1) for row in rows] == [(1, False)] * 3 + [(1, True)]
        server.models = serving("other/model")
        server.script = lambda _: error(
            404, "The model `Qwen/Qwen3-8B` does not exist.", type="NotFoundError", code=404
        )
        Path("log.ctxrel/store.sqlite").unlink()
        said = run(shell, server, "localhost:8000", code=1)
    assert "does not serve the model 'Qwen/Qwen3-8B'; choose another with --model, for example other/model" in said


def llama_cpp(seen: Seen) -> Answer:
    """Any name is served."""
    assert seen.body["model"] == "qwen3-8b"
    if seen.body["response_format"]["json_schema"]["name"] == "doctor":
        return completion('{"well": true}')
    if len(json.dumps(seen.record)) > 30_000:
        return error(400, "request exceeds the available context size", type="exceed_context_size_error", code=400)
    return first_sentence(seen)


def test_llama_cpp(shell: Shell) -> None:
    """A name that is not in the list is served; four are in flight at most; doctor finds the format."""
    with LoopbackServer(llama_cpp, models=serving("Qwen3-8B-Q4_K_M.gguf")) as server:
        server.no_such_model = error(404, "File Not Found", type="not_found_error", code=404)
        run(shell, server, "--concurrency 4")
        assert server.most_in_flight <= 4
        assert [row["score"] for row in read_rows(Path("log.ctxrel"))] == [1] * 4
        run(shell, server, "ctxrel doctor")
    assert len(read_rows(Path("trial"))) == 4


def test_what_is_run() -> None:
    """The blocks that are not run are those that start servers, and that of a model file."""
    assert len(PAGE.blocks("bash")) == 7
    assert PAGE.text.count("<!-- not run: ") == 4

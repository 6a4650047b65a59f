"""The pytest plugin: its settings, and the fixture `ctxrel`.

It is loaded in every pytest run of an environment that has ctxrel: nothing heavy is imported until the fixture is used.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .judge import ContextJudge

SETTINGS: dict[str, tuple[str, str]] = {
    "model": ("string", "The judge, gpt-6-luna by default; offline needs no key and no network."),
    "api": ("string", "What is asked: chat, or decisions (beta)."),
    "base_url": ("string", "An OpenAI-compatible endpoint; OPENAI_BASE_URL by default."),
    "api_key_env": ("string", "Variable that holds the key, OPENAI_API_KEY by default."),
    "param": ("linelist", "A request parameter as KEY=VALUE; several."),
    "timeout": ("float", "Seconds for one attempt."),
    "attempts": ("int", "Attempts before a judgement has failed, 5 by default."),
    "max_input_tokens": ("int", "Divide longer records over several requests; 3 bytes are a token."),
    "explain": ("bool", "Ask for a short reason beside each verdict; it costs tokens."),
    "insecure": ("bool", "Allow plain http, and no key, to a host that is not this machine."),
    "store": ("string", "Where replies are kept, ctxrel/store.sqlite in pytest's cache by default."),
}
"""Type of the ini value, and what it means, by name; `--ctxrel-NAME` wins over `ctxrel_NAME`."""
_TYPES: dict[str, type] = {"int": int, "float": float}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Each setting as an option of the command line and of the ini file."""
    group = parser.getgroup("ctxrel", "ctxrel: contexts and answers judged by an LLM")
    for name, (kind, meaning) in SETTINGS.items():
        own: dict[str, Any] = {"metavar": name.rpartition("_")[2].upper(), "type": _TYPES.get(kind, str)}
        if kind == "linelist":
            own = {"metavar": "KEY=VALUE", "action": "append"}
        elif kind == "bool":
            own = {"action": "store_true"}
        option = f"--ctxrel-{name.replace('_', '-')}"
        group.addoption(option, dest=f"ctxrel_{name}", default=None, help=meaning, **own)
        parser.addini(f"ctxrel_{name}", meaning, type=kind, default=None)  # type: ignore[arg-type]  # its literals


@pytest.fixture(scope="session", name="ctxrel")
def _ctxrel(pytestconfig: pytest.Config) -> Iterator["ContextJudge"]:
    """Judges questions, contexts and answers; replies are kept from one run of pytest to the next."""
    from ...evaluators.errors import CtxrelError  # noqa: PLC0415  # not before anybody asks for it
    from .judge import ContextJudge  # noqa: PLC0415
    from .settings import judge_options, store_path  # noqa: PLC0415
    from .telling import options_of_pytest  # noqa: PLC0415

    try:
        settings = {name: _setting(pytestconfig, name) for name in SETTINGS}
        judge = ContextJudge(judge_options(settings), store=store_path(settings, pytestconfig))
    except CtxrelError as error:
        pytest.fail(f"ctxrel: {options_of_pytest(str(error))}", pytrace=False)
    yield judge
    judge.close()


def _setting(config: pytest.Config, name: str) -> Any:  # noqa: ANN401  # of the type that its option has
    given = config.getoption(f"ctxrel_{name}")
    return config.getini(f"ctxrel_{name}") if given is None else given

"""What the reader of a failed test is told."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_LONGEST = 160
_Row = Mapping[str, Any]
_OPTION = re.compile(r"(?<!\S)--(?!ctxrel-)(?=[a-z])")


def options_of_pytest(sentence: str) -> str:
    """An error's sentence with the options of `ctxrel run` as pytest has them: `--ctxrel-model` for `--model`."""
    return _OPTION.sub("--ctxrel-", sentence)


def tell_low_score(evaluator: str, row: _Row, min_score: float, inputs: Mapping[str, Any]) -> str:
    """A row whose score is too low: the score, what was found and where, and what it took."""
    contexts = [given] if isinstance(given := inputs["contexts"], str) else given
    lines = [f"{evaluator}: the score is {row['score']:g}, expected at least {min_score:g}"]
    lines += [f"{name}: {_short(value)}" for name, value in inputs.items() if name != "contexts"]
    if "statements" in row:
        claims = zip(row["statements"], row["statement_scores"], row["evidence"], strict=True)
        lines += _list("statements of the answer", [_claim(*claim) for claim in claims])
        lines += _list("contexts", _numbered(_short(str(context)) for context in contexts))
    else:
        lines += _list("relevant statements", [_short(text) for text in row["relevant_statements"]])
        lines += _list("contexts", _numbered(map(_verdict, row["contexts"], contexts)))
    if row.get("reason"):
        lines.append(f"reason: {_short(str(row['reason']))}")
    return "\n".join([*lines, _usage(row)])


def _claim(statement: str, score: int, evidence: Sequence[_Row]) -> str:
    places = ", ".join(str(number) for number in sorted({place["context"] + 1 for place in evidence}))
    said = f"supported by context {places}" if score else "not supported"
    return f"{said}: {_short(statement)}"


def _verdict(verdict: _Row, context: object) -> str:
    said = "relevant" if verdict["relevant"] else "not relevant"
    return f"{said}, {verdict['relevant_statements']} of {verdict['statements']} sentences: {_short(str(context))}"


def _numbered(lines: Iterable[str]) -> list[str]:
    return [f"{number}: {line}" for number, line in enumerate(lines, start=1)]


def _list(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"  {line}" for line in lines)] if lines else [f"{title}: none"]


def _usage(row: _Row) -> str:
    if not row["requests"]:
        return "nothing was asked: there was nothing to judge"
    usage = row["usage"]
    return f"model {row['model']}, {usage['input_tokens']:,} input and {usage['output_tokens']:,} output tokens"


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…")

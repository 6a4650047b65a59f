"""What every output of an evaluator offers, whatever its kind."""

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar

from ..case import Case
from ..errors import Failure, FailureKind
from .columns import ColumnTypes

Verdict = TypeVar("Verdict")
Reply = Mapping[str, object]


class Marks(NamedTuple):
    """What a scoring rule sees of a verdict."""

    total: float
    """Sum of the marks, as the number of relevant statements."""
    number: int
    """How many marks there are, as the number of statements."""


class Range(NamedTuple):
    """Between which numbers a mark, or a score, can be; None where there is no bound."""

    low: float | None
    high: float | None


class Figures(Protocol):
    """Running sums over evaluated records; memory does not grow with them."""

    def add(self, fact: Any) -> None:  # noqa: ANN401  # what the output's own `fact` gave
        """Count one record."""

    def result(self) -> dict[str, Any]:
        """The figures, ready for JSON."""


class UnfitExample(ValueError):
    """A worked example's outputs are not what they should be; `place` leads to it from the outputs."""

    def __init__(self, place: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.place = place


class Output(Protocol[Verdict]):
    """One output: what stands for it in the reply, and what it comes to in the row."""

    @property
    def name(self) -> str:
        """Its key in the reply and its column in the row, or the first of several."""

    @property
    def kind(self) -> str:
        """The kind as it stands in the YAML."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The scoring rules that can be applied to it."""

    @property
    def numbered(self) -> bool:
        """Whether the judge has to see numbers on the sentences of the contexts."""

    @property
    def divisible(self) -> bool:
        """Whether verdicts over parts of a record can be united."""

    @property
    def range(self) -> Range:
        """Of its marks."""

    def schema(self) -> dict[str, object]:
        """JSON schema (strict) of each of its keys in the reply."""

    def form(self) -> dict[str, str]:
        """What stands for each of its keys where the output format is described."""

    def example(self, outputs: Reply, case: Case) -> dict[str, object]:
        """Its part of an example's reply. Raises UnfitExample."""

    def idle(self, case: Case) -> bool:
        """Whether the verdict is clear without a request."""

    def nothing(self) -> Verdict:
        """The verdict where there was nothing to ask."""

    def read(self, reply: Reply, case: Case) -> Verdict:
        """Its verdict in a reply. Raises Failure (`invalid_reply`)."""

    def found(self, verdict: Verdict) -> dict[str, object]:
        """What the request for the next part of the record has to be told."""

    def unite(self, first: Verdict, second: Verdict) -> Verdict:
        """The verdict over two parts of a record."""

    def columns(self, verdict: Verdict, case: Case) -> dict[str, object]:
        """Its columns in the row of an evaluated record."""

    def empty(self) -> dict[str, object]:
        """Its columns in the row of a record that could not be judged."""

    def types(self) -> ColumnTypes:
        """What each of its columns holds."""

    def marks(self, verdict: Verdict, case: Case) -> Marks:
        """What a scoring rule sees."""

    def fact(self, verdict: Verdict, case: Case) -> object:
        """What its figures count of a verdict."""

    def figures(self) -> Figures | None:
        """New figures; None where there are none."""


UNIT = Range(0, 1)


def refuse(message: str) -> NoReturn:
    """Raise the Failure of a reply that does not fit."""
    raise Failure(FailureKind.INVALID_REPLY, message)


def value_of(reply: Reply, key: str) -> object:
    """The value under a key. Raises Failure."""
    if key not in reply:
        refuse(f"the reply has no key {key!r}")
    return reply[key]


def list_of(reply: Reply, key: str) -> list[object]:
    """The list under a key. Raises Failure."""
    value = value_of(reply, key)
    if not isinstance(value, list):
        refuse(f"{key!r} is no list")
    return value


def texts_of(reply: Reply, key: str) -> list[str]:
    """The texts under a key, none of them blank. Raises Failure."""
    return [_filled(text, key) for text in list_of(reply, key)]


def _filled(text: object, key: str) -> str:
    if not isinstance(text, str) or not text.strip():
        refuse(f"{key!r} holds something that is no text")
    return text


def read_binary(value: object, key: str) -> bool:
    """1 or 0, also as a boolean or as a text. Raises Failure."""
    if isinstance(value, str) and value.strip() in ("0", "1"):
        return value.strip() == "1"
    if not isinstance(value, (bool, int, float)) or value not in (0, 1):
        refuse(f"{key!r} holds something that is neither 1 nor 0")
    return value == 1

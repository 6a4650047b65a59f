"""Kind `claims`: the judge takes the answer apart into statements, and says which of them the contexts support."""

from typing import NamedTuple

from rapidfuzz import fuzz

from ..case import Case
from ..figures import ratio
from ..locating import same_text
from .citations import NUMBERS_FORM, NUMBERS_SCHEMA, read_numbers
from .columns import SPAN, ColumnTypes, Scalar
from .examples import numbers_of, text_list
from .output import UNIT, Marks, Reply, UnfitExample, list_of, read_binary, refuse, texts_of

SCORES = "statement_scores"
EVIDENCE = "evidence"
ANSWER = "answer"


class Claim(NamedTuple):
    """A statement of the answer."""

    text: str
    supported: bool
    evidence: frozenset[int]
    """Numbers of the sentences that were named for the verdict."""


class ClaimFact(NamedTuple):
    """What is counted of one record."""

    statements: int
    supported: int
    without_evidence: int
    no_contexts: bool


class Claims:
    """Statements of the answer with 1 (supported by the contexts) or 0, and the sentences that show it."""

    kind = "claims"
    rules = ("mean", "share", "any")
    numbered = divisible = True
    range = UNIT

    def __init__(self, name: str) -> None:
        self.name = name

    def schema(self) -> dict[str, object]:
        """JSON schema (strict) of each of its keys in the reply."""
        return {
            self.name: {"type": "array", "items": {"type": "string"}},
            # Before the scores: a judge that has to cite first scores what it has found.
            EVIDENCE: {"type": "array", "items": NUMBERS_SCHEMA},
            SCORES: {"type": "array", "items": {"type": "integer", "enum": [0, 1]}},
        }

    def form(self) -> dict[str, str]:
        """What stands for each of its keys where the output format is described."""
        return {
            self.name: "[statements of the answer]",
            EVIDENCE: f"[{NUMBERS_FORM} for each statement]",
            SCORES: "[1 or 0 for each statement]",
        }

    def example(self, outputs: Reply, case: Case) -> dict[str, object]:
        """The example's lists, its evidence as numbers. Raises UnfitExample.

        Without evidence, as in examples for other tools, it is the sentence most like the statement.
        """
        texts = text_list(outputs[self.name], (self.name,))
        scores = _list_beside(texts, outputs, SCORES)
        if any(score not in (0, 1) for score in scores):
            raise UnfitExample((SCORES,), "expected nothing but 1 and 0")
        if EVIDENCE in outputs:
            _list_beside(texts, outputs, EVIDENCE)
            numbers = [sorted(numbers_of(outputs, (EVIDENCE, index), case)) for index in range(len(texts))]
        else:
            numbers = [_most_alike(text, case) if score else [] for text, score in zip(texts, scores, strict=True)]
        return {self.name: texts, EVIDENCE: numbers, SCORES: [int(bool(score)) for score in scores]}

    def idle(self, case: Case) -> bool:
        """Whether there is no context, no answer, or no statement that an earlier part has found in it."""
        answer = case.inputs.get(ANSWER)
        blank = isinstance(answer, str) and not answer.strip()
        return blank or not any(case.contexts) or case.found.get(self.name) == []

    def nothing(self) -> list[Claim]:
        """No statement."""
        return []

    def read(self, reply: Reply, case: Case) -> list[Claim]:
        """The statements. Raises Failure unless the lists are of one length and hold what they should."""
        texts = texts_of(reply, self.name)
        scores, evidence = list_of(reply, SCORES), list_of(reply, EVIDENCE)
        if not len(texts) == len(scores) == len(evidence):
            refuse(f"{len(texts)} statements, {len(scores)} scores and {len(evidence)} lists of evidence")
        claims = [
            Claim(text, read_binary(score, SCORES), frozenset(_numbers(named, case)))
            for text, score, named in zip(texts, scores, evidence, strict=True)
        ]
        known = case.found.get(self.name)
        return _as_given(claims, known) if isinstance(known, list) else claims

    def found(self, verdict: list[Claim]) -> dict[str, object]:
        """The statements: all parts of a record are asked about the same."""
        return {self.name: [claim.text for claim in verdict]}

    def unite(self, first: list[Claim], second: list[Claim]) -> list[Claim]:
        """A statement is supported if any part supports it."""
        if not first or not second:
            return first or second
        return [
            Claim(one.text, one.supported or other.supported, one.evidence | other.evidence)
            for one, other in zip(first, second, strict=True)
        ]

    def columns(self, verdict: list[Claim], case: Case) -> dict[str, object]:
        """The statements, their scores, and where the evidence for each stands."""
        return {
            self.name: [claim.text for claim in verdict],
            SCORES: [int(claim.supported) for claim in verdict],
            EVIDENCE: [_places(claim, case) for claim in verdict],
        }

    def empty(self) -> dict[str, object]:
        """Empty lists."""
        return {self.name: [], SCORES: [], EVIDENCE: []}

    def types(self) -> ColumnTypes:
        """What each of its columns holds."""
        place: ColumnTypes = {"context": Scalar.INTEGER, "sentence": Scalar.INTEGER, "span": SPAN}
        return {self.name: [Scalar.TEXT], SCORES: [Scalar.INTEGER], EVIDENCE: [[place]]}

    def marks(self, verdict: list[Claim], case: Case) -> Marks:  # noqa: ARG002  # the verdict holds all
        """One for each supported statement."""
        return Marks(sum(claim.supported for claim in verdict), len(verdict))

    def fact(self, verdict: list[Claim], case: Case) -> ClaimFact:
        """What is counted."""
        return ClaimFact(
            statements=len(verdict),
            supported=sum(claim.supported for claim in verdict),
            without_evidence=sum(claim.supported and not claim.evidence for claim in verdict),
            no_contexts=not any(case.contexts),
        )

    def figures(self) -> "ClaimFigures":
        """Counts of statements."""
        return ClaimFigures()


class ClaimFigures:
    """Sums over evaluated records."""

    def __init__(self) -> None:
        self._no_contexts = self._no_statements = 0
        self._statements = self._supported = self._without_evidence = 0

    def add(self, fact: ClaimFact) -> None:
        """Count one record."""
        self._no_contexts += fact.no_contexts
        self._no_statements += fact.statements == 0 and not fact.no_contexts
        self._statements += fact.statements
        self._supported += fact.supported
        self._without_evidence += fact.without_evidence

    def result(self) -> dict[str, float | int | None]:
        """Counts of records without contexts or statements (their score is 0), and of statements."""
        return {
            "no_contexts": self._no_contexts,
            "no_statements": self._no_statements,
            "statements": self._statements,
            "supported_statements": self._supported,
            "supported_without_evidence": self._without_evidence,
            "statement_support": ratio(self._supported, self._statements),
        }


def _as_given(claims: list[Claim], known: list[str]) -> list[Claim]:
    """The claims in the words and the order of an earlier part. Raises Failure unless they are the same statements."""
    left: dict[str, list[Claim]] = {}
    for claim in claims:
        left.setdefault(same_text(claim.text), []).append(claim)
    if sorted(map(same_text, known)) != sorted(same_text(claim.text) for claim in claims):
        refuse("the statements are not those that were given")
    return [left[same_text(text)].pop(0)._replace(text=text) for text in known]


def _list_beside(texts: list[str], outputs: Reply, key: str) -> list[object]:
    """The list under a key, which has to be as long as the texts. Raises UnfitExample."""
    value = outputs.get(key)
    if not isinstance(value, list) or len(value) != len(texts):
        raise UnfitExample((key,), f"expected a list of {key} with one entry for each of the {len(texts)} statements")
    return value


def _most_alike(text: str, case: Case) -> list[int]:
    found = max(case.statements, key=lambda statement: fuzz.token_set_ratio(text, statement.text), default=None)
    return [found.number] if found else []


def _numbers(named: object, case: Case) -> set[int]:
    if not isinstance(named, list):
        refuse(f"{EVIDENCE!r} holds something that is no list")
    return read_numbers(named, EVIDENCE, case)


def _places(claim: Claim, case: Case) -> list[dict[str, object]]:
    return [
        {"context": statement.context, "sentence": statement.number, "span": (statement.start, statement.end)}
        for statement in case.statements
        if statement.number in claim.evidence
    ]

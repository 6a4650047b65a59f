"""Reading what a judge answered to predicates: a probability for each, or none of it."""

from collections.abc import Collection, Mapping

from ..errors import Failure, FailureKind
from ..outputs.output import list_of, refuse

ANSWERS = "answers"


def read_answers(reply: Mapping[str, object], names: Collection[str]) -> dict[str, float]:
    """The probabilities by the names of the predicates, in the order of `names`.

    Raises Failure: `refusal` where the judge declined one of them, `invalid_reply` unless each has one probability
    from 0 to 1.
    """
    answers = list_of(reply, ANSWERS)
    if len(answers) != len(names):
        refuse(f"{len(answers)} answers to {len(names)} predicates")
    found: dict[str, float] = {}
    declined = 0
    for answer in answers:
        if not isinstance(answer, dict):
            refuse(f"{ANSWERS!r} holds something that is no answer")
        name, kind = answer.get("name"), answer.get("type")
        if not isinstance(name, str) or name in found:
            refuse("an answer has no name, or that of another one")
        if kind == "refusal":
            declined += 1
        elif kind != "predicate":
            refuse("an answer is not that to a predicate")
        found[name] = 0.0 if kind == "refusal" else _probability(answer.get("probability"))
    if missing := next((name for name in names if name not in found), None):
        refuse(f"there is no answer to the predicate {missing}")
    if declined:
        raise Failure(FailureKind.REFUSAL, f"the judge refused to answer {declined} of {len(names)} predicates")
    return {name: found[name] for name in names}


def _probability(value: object) -> float:
    """Raises Failure for what is none, NaN included."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        refuse("a probability is no number from 0 to 1")
    return float(value)
